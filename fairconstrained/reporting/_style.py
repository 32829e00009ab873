"""The style sheet and the script of the HTML page of a report."""

STYLE = """
.fairness-report { --bg: #fff; --fg: #1a1a1a; --muted: #555; --line: #d4d4d4; --grid: #e4e4e4;
  --c0: #666; --c1: #0068a5; --c2: #b04600; --c3: #00735a; --c4: #9c4a86; --c5: #7a5c00;
  --good: #0a5228; --good-bg: #e4f3e8; --warn: #5f4100; --warn-bg: #fff2cf;
  --bad: #861a12; --bad-bg: #fde7e4; --info: #1b3f6e; --info-bg: #e7eef8;
  font: 15px/1.5 system-ui, sans-serif; color: var(--fg); background: var(--bg);
  box-sizing: border-box; max-width: 76rem; margin: 0 auto; padding: 1rem; }
@media screen and (prefers-color-scheme: dark) { .fairness-report { --bg: #16181b; --fg: #ececec;
  --muted: #b4b8bd; --line: #4a4e54; --grid: #33373c; --c0: #b9bdc2; --c1: #5db4ef; --c2: #f2955a;
  --c3: #4fc9a8; --c4: #dc97ca; --c5: #dcb548; --good: #a9e5bd; --good-bg: #12301d;
  --warn: #f7d98b; --warn-bg: #382b08; --bad: #ffb9b1; --bad-bg: #451713; --info: #b7d2f7;
  --info-bg: #16263c; } .fairness-page { background: #16181b; } }
.fairness-page { margin: 0; }
.fairness-report h1 { font-size: 1.5rem; margin: 0 0 .2rem; }
.fairness-report h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem;
  border-bottom: 1px solid var(--line); }
.fairness-report h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
.fairness-report p, .fairness-report ul { max-width: 52rem; margin: .4rem 0; color: inherit; }
.fairness-report .muted { color: var(--muted); }
.fairness-report h1, .fairness-report h2, .fairness-report h3, .fairness-report p,
.fairness-report li, .fairness-report th, .fairness-report td, .fairness-report figcaption {
  overflow-wrap: anywhere; }
.fairness-report .verdict { border-left: .5rem solid; border-radius: .3rem; padding: .7rem 1rem;
  margin: 1rem 0; font-size: 1.1rem; }
.fairness-report .verdict .sign { font-weight: 700; margin-right: .4rem; }
.fairness-report .verdict ul { font-size: .95rem; padding-left: 1.2rem; }
.fairness-report .good { color: var(--good); background: var(--good-bg); }
.fairness-report .warn { color: var(--warn); background: var(--warn-bg); }
.fairness-report .bad { color: var(--bad); background: var(--bad-bg); }
.fairness-report .info { color: var(--info); background: var(--info-bg); }
.fairness-report table { border-collapse: collapse; font-variant-numeric: tabular-nums;
  color: inherit; margin: 0; }
.fairness-report th, .fairness-report td { padding: .2rem .7rem .2rem 0; text-align: left;
  vertical-align: middle; border: none; background: none; font-weight: 400; }
.fairness-report thead th { border-bottom: 1px solid var(--line); font-weight: 600;
  vertical-align: bottom; }
.fairness-report td.number, .fairness-report th.number { text-align: right; }
.fairness-report td.number, .fairness-report th.number { white-space: nowrap; }
.fairness-report caption { text-align: left; font-weight: 600; padding-bottom: .2rem; }
.fairness-report caption span { font-weight: 400; display: block; color: var(--muted); }
.fairness-report table.dots { width: 100%; }
.fairness-report table.dots th[scope=row] { width: 26%; min-width: 4.5rem; line-height: 1.25; }
.fairness-report table.dots .plot { min-width: 6rem; width: 50%; padding-right: .4rem; }
.fairness-report table.dots td.number { line-height: 20px; padding-right: 0; padding-left: .4rem; }
.fairness-report table.dots td.rows { width: 1%; padding-right: .5rem; }
.fairness-report table.scores .plot { width: 37%; padding-right: 1rem; }
.fairness-report table.scores th[scope=row] { width: 15%; }
.fairness-report table.dots tfoot th, .fairness-report table.dots tfoot td {
  border-top: 1px solid var(--line); }
.fairness-report .panels { display: grid; gap: 1.6rem 2.4rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); align-items: start; }
.fairness-report .squares { display: flex; flex-wrap: wrap; gap: 1rem; }
.fairness-report .squares figure { width: 160px; margin: 0; font-size: .85rem; line-height: 1.3; }
.fairness-report .scroll { overflow-x: auto; }
.fairness-report figure { margin: .6rem 0; }
.fairness-report figcaption { color: var(--muted); max-width: 45rem; }
.fairness-report .keys { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; list-style: none;
  padding: 0; margin: .4rem 0; }
.fairness-report .keys li { display: inline-flex; align-items: center; gap: .35rem; }
.fairness-report svg { display: block; }
.fairness-report svg.row, .fairness-report svg.key { overflow: visible; }
.fairness-report svg.key { flex: none; }
.fairness-report svg.plane, .fairness-report svg.square { max-width: 100%; height: auto; }
.fairness-report svg text { fill: var(--muted); font-size: 12px; }
.fairness-report svg line { stroke: var(--grid); }
.fairness-report svg line.reference { stroke: var(--muted); stroke-dasharray: 2 3; }
.fairness-report svg line.bound { stroke: var(--fg); stroke-width: 2.5; }
.fairness-report svg line.cut { stroke: var(--fg); stroke-width: 1.2; }
.fairness-report svg line.interval { stroke: currentColor; stroke-width: 3; opacity: .55; }
.fairness-report svg line.few { stroke-dasharray: 5 3; stroke-width: 2; }
.fairness-report svg .span { fill: var(--line); }
.fairness-report svg .frame { fill: none; stroke: var(--line); }
.fairness-report svg polyline { fill: none; stroke: currentColor; stroke-width: 1.8; }
.fairness-report svg polyline.equal { stroke: var(--muted); stroke-width: 1;
  stroke-dasharray: 3 3; }
.fairness-report svg polyline.limit { stroke: var(--fg); stroke-dasharray: 6 4; }
.fairness-report svg g { fill: currentColor; stroke: var(--bg); stroke-width: 1; }
.fairness-report svg g.hollow { fill: var(--bg); stroke: currentColor; stroke-width: 2; }
.fairness-report svg path.hist { fill: currentColor; opacity: .75; }
.fairness-report .m0 { color: var(--c0); } .fairness-report .m1 { color: var(--c1); }
.fairness-report .m2 { color: var(--c2); } .fairness-report .m3 { color: var(--c3); }
.fairness-report .m4 { color: var(--c4); } .fairness-report .m5 { color: var(--c5); }
.fairness-report details { margin: .8rem 0; border-top: 1px solid var(--line); }
.fairness-report summary { cursor: pointer; font-weight: 600; padding: .4rem 0; }
.fairness-report input { font: inherit; color: inherit; background: var(--bg);
  border: 1px solid var(--muted); border-radius: .25rem; padding: .25rem .5rem; width: 16rem;
  max-width: 100%; box-sizing: border-box; }
.fairness-report [hidden] { display: none; }
@media (max-width: 600px) { .fairness-report { padding: .7rem; }
  .fairness-report .verdict { font-size: 1rem; padding: .6rem .7rem; }
  .fairness-report th, .fairness-report td { padding-right: .5rem; }
  .fairness-report table.dots .plot { padding-right: .8rem; }
  .fairness-report table.dots:not(:has(.rows)) th[scope=row] { min-width: 6.2rem; } }
@media print { .fairness-report { max-width: none; padding: 0; font-size: 10.5pt;
    print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .fairness-report table.dots, .fairness-report figure, .fairness-report .verdict,
  .fairness-report tr { break-inside: avoid; }
  .fairness-report h2, .fairness-report h3 { break-after: avoid; }
  .fairness-report .search { display: none; } }
""".strip()

# Rows that match the search are shown, in all tables of groups; without a search, the first choice.
SCRIPT = """
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
""".strip()

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
</head>
<body class="fairness-page">
{body}
</body>
</html>
"""
