// Pairs of texts, or of a text and a mark of a picture, that overlap.
const boxes = [], found = [];
const walker = document.createTreeWalker(document.querySelector(".fairness-report"), 4);
while (walker.nextNode()) {
  const parent = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || parent.closest("style, script, title, option")) continue;
  const range = document.createRange();
  range.selectNodeContents(walker.currentNode);
  for (const box of range.getClientRects())
    if (box.width && box.height) boxes.push([box, walker.currentNode.data.trim()]);
}
const marks = "circle, rect, path, line.interval";
for (const mark of document.querySelectorAll("svg.row :is(" + marks + ")"))
  if (mark.getBoundingClientRect().width) boxes.push([mark.getBoundingClientRect(), null]);
boxes.sort((a, b) => a[0].top - b[0].top);
for (let i = 0; i < boxes.length; i++)
  for (let j = i + 1; j < boxes.length && boxes[j][0].top < boxes[i][0].bottom - 3; j++) {
    const [a, first] = boxes[i], [b, second] = boxes[j];
    if (first === null && second === null) continue;
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across > 1.5 && down > 3) found.push([first, second, across, down]);
  }
return found;
