"use strict";
// Tables that are sorted by the head that is pressed, and bars for shares.

const kRowsShown = 200;

// A table that its heads sort. columns: {title, value (what is sorted), show (an element or text), number}
function sortedTable(columns, rows, first, caption) {
  const body = element("tbody"), more = element("p", {className: "ways"}), heads = [];
  let by = first, falling = columns[first].number === true, shown = kRowsShown;
  const fill = () => {
    const {value} = columns[by];
    rows.sort((a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0) * (falling ? -1 : 1));
    body.replaceChildren(...rows.slice(0, shown).map(
        row => element(
            "tr", {},
            ...columns.map(column => element("td", {className: column.number ? "number" : ""}, column.show(row))))));
    heads.forEach((head, at) => {
      if (at === by) head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    more.replaceChildren(
        ...(rows.length > shown ? [button(
                                      `Show more: ${Words.count(shown)} of ${Words.count(rows.length)} are shown`,
                                      () => {
                                        shown += 1000;
                                        fill();
                                      })] :
                                  []));
  };
  columns.forEach(
      (column, at) => heads.push(
          element("th", {scope: "col", className: column.number ? "number" : ""}, button(column.title, () => {
                    falling = at === by ? !falling : column.number === true;
                    by = at;
                    fill();
                  }))));
  fill();
  return element(
      "div", {className: "table"},
      element(
          "table", {}, element("caption", {className: "spoken"}, caption),
          element("thead", {}, element("tr", {}, ...heads)), body),
      more);
}

function shareBar(share, kind = "run") {
  const bar = element("i", {});
  bar.style.width = Math.min(100, share * 100).toFixed(2) + "%";
  bar.style.background = kKindColours[kind];
  return element(
      "span", {className: "share"}, element("span", {className: "bar", "aria-hidden": "true"}, bar),
      Words.share(share));
}
