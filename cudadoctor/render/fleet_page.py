"""What the HTML page of a fleet looks like: its style sheet and its script. Nothing is fetched from anywhere."""

from __future__ import annotations

# Each state has a colour, a sign and a border of its own, so that no one of them has to carry the meaning alone.
STYLE = """
:root { color-scheme: light dark; --ground: #fff; --text: #1b1f24; --soft: #57606a; --line: #d0d7de; --panel: #f6f8fa;
  --fine: #d3eadb; --fine-line: #7fb592; --fine-text: #1c4529; --fail: #b42318; --fail-text: #fff; --open: #6d3fb3;
  --open-text: #fff; --odd: #f5c542; --odd-text: #3b2a00; --gone-line: #57606a; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #0d1117; --text: #e6edf3; --soft: #9aa4af; --line: #30363d; --panel: #161b22;
    --fine: #1d3a28; --fine-line: #3f7a55; --fine-text: #b7e3c5; --fail: #e5534b; --fail-text: #1a0302; --open: #b78bff;
    --open-text: #160a2b; --odd: #d9a514; --odd-text: #201600; --gone-line: #9aa4af; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 64rem; padding: 1.5rem 1rem 4rem; background: var(--ground); color: var(--text);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.25rem; line-height: 1.4; margin: 0 0 1rem; overflow-wrap: anywhere; }
h1 b { display: inline-block; padding: 0 .5em; margin-right: .4em; border-radius: 4px; background: var(--panel);
  border: 1px solid var(--line); }
h1.fail b { background: var(--fail); color: var(--fail-text); border-color: var(--fail); }
h1.open b { background: var(--open); color: var(--open-text); border-color: var(--open); }
h1.fine b { background: var(--fine); color: var(--fine-text); border-color: var(--fine-line); }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
h3 { font-size: .9rem; margin: 1rem 0 .25rem; color: var(--soft); font-weight: 600; }
code, .mono { font: .9em/1.45 ui-monospace, "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  overflow-wrap: anywhere; }
.legend { display: flex; flex-wrap: wrap; gap: .4rem 1.4rem; list-style: none; margin: 0 0 1rem; padding: 0; }
.legend li { display: flex; align-items: center; gap: .45rem; }
.legend strong { font-variant-numeric: tabular-nums; }
.legend .none { opacity: .55; }
.find { margin: 1rem 0 .5rem; }
.find input { font: inherit; padding: .25rem .5rem; width: 16rem; max-width: 100%; color: inherit;
  background: var(--ground); border: 1px solid var(--soft); border-radius: 4px; }
.map { overflow-x: auto; padding-bottom: .25rem; }
.row { display: flex; align-items: center; gap: 2px; margin-bottom: 2px; width: max-content; }
.row > .at { flex: none; width: var(--at, 9rem); text-align: right; padding-right: .5rem; color: var(--soft);
  font-size: 11px; line-height: 1; white-space: nowrap; }
.c { flex: none; display: inline-flex; align-items: center; justify-content: center; width: 12px; height: 12px;
  font: 700 10px/1 ui-monospace, Menlo, Consolas, monospace; text-decoration: none; border: 1px solid;
  border-radius: 2px; overflow: hidden; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.mid .c { width: 38px; height: 20px; font-size: 11px; font-weight: 600; }
.cards .row { flex-wrap: wrap; width: auto; gap: 6px; }
.cards .c { width: 12rem; height: 3.4rem; padding: .2rem .5rem; flex-direction: column; align-items: flex-start;
  font-size: 13px; text-align: left; border-radius: 5px; }
.cards .c small { font-weight: 400; font-size: 11px; max-width: 100%; overflow: hidden; text-overflow: ellipsis;
  white-space: nowrap; }
.fine { background: var(--fine); border-color: var(--fine-line); color: var(--fine-text); }
.fail { background: repeating-linear-gradient(45deg, transparent 0 3px, rgba(0,0,0,.22) 3px 5px) var(--fail);
  border-color: var(--fail); color: var(--fail-text); }
.cards .fail, .mid .fail, h1.fail { background: var(--fail); }
h1.fail, h1.open, h1.fine { background: none; color: inherit; }
.open { background: var(--open); border: 1px dotted var(--open-text); color: var(--open-text); }
.odd { background: var(--odd); border-color: var(--text); color: var(--odd-text); border-width: 1px 1px 3px 1px; }
.gone { background: none; border: 1px dashed var(--gone-line); color: var(--text); }
.dim { opacity: .12; }
a.c:focus-visible { outline: 2px solid var(--text); outline-offset: 1px; }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem; border-top: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; font-size: .85rem; }
th.n, td.n { width: 1%; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr:target td { background: var(--panel); }
.tag { display: inline-block; min-width: 3.1em; padding: 0 .4em; border-radius: 3px; border: 1px solid;
  font-size: .8rem; font-weight: 700; text-align: center;
  print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.tag.fail { background: var(--fail); }
.says { margin: 0; }
.soft { color: var(--soft); }
details summary { cursor: pointer; }
footer { margin-top: 3rem; padding-top: .5rem; border-top: 1px solid var(--line); color: var(--soft);
  font-size: .85rem; }
@media print { body { max-width: none; font-size: 11px; padding: 0; } .find { display: none; }
  .row, tr { break-inside: avoid; } details > :not(summary) { display: block; } }
@media (max-width: 40rem) { .row > .at { width: 5rem; overflow: hidden; text-overflow: ellipsis; } }
"""

# Dims the cells of all nodes whose name, or whose words, do not hold what was typed.
SCRIPT = """
(function () {
  var field = document.getElementById('find'), count = document.getElementById('found');
  if (!field) return;
  field.closest('.find').hidden = false;
  var cells = Array.prototype.slice.call(document.querySelectorAll('.map .c'));
  field.addEventListener('input', function () {
    var words = field.value.toLowerCase().trim(), found = 0;
    cells.forEach(function (cell) {
      var hit = !words || cell.title.toLowerCase().indexOf(words) >= 0;
      cell.classList.toggle('dim', !hit);
      if (hit) found += 1;
    });
    count.textContent = words ? found + ' of ' + cells.length : '';
  });
})();
"""
