// Elements with text of their own whose text is wider than they are, or that lie outside the page.
const wide = document.documentElement.clientWidth, found = [];
for (const one of document.querySelectorAll(".fairness-report *")) {
  const box = one.getBoundingClientRect();
  if (!box.width || one.closest(".scroll") || one.closest("style, script, title")) continue;
  if (box.right > wide + 1 || box.left < -1) found.push([one.tagName, one.textContent, box.right]);
  if (one.scrollWidth > one.clientWidth + 1 && one.clientWidth && !(one instanceof SVGElement))
    found.push([one.tagName, one.textContent, one.scrollWidth, one.clientWidth]);
}
return found;
