for (const box of document.querySelectorAll(".fairness-report .search input:not([data-ready])")) {
  box.dataset.ready = "yes";
  const report = box.closest(".fairness-report");
  const rows = [...report.querySelectorAll("tr[data-group]")];
  const asked = new Map(rows.map(row => [row, row.hidden]));
  const count = report.querySelector(".search .count");
  box.addEventListener("input", () => {
    const text = box.value.trim().toLowerCase();
    const found = new Set();
    for (const row of rows) {
      const match = row.dataset.group.includes(text);
      row.hidden = text ? !match : asked.get(row);
      if (text && match) found.add(row.dataset.group);
    }
    for (const row of report.querySelectorAll("tr.others")) row.hidden = Boolean(text);
    count.textContent = text ? `${found.size} found` : "";
  });
}
