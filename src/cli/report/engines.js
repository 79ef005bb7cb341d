"use strict";
// Engines: how busy each is, of the whole program and of the range that is shown.

function enginesPanel(profile, view) {
  const engines = profile.engines.map(engine => ({...engine, cell: element("td", {className: "number"})}));
  if (engines.length === 0) return [element("p", {className: "quiet"}, "No engine was busy: no spans are recorded.")];
  const busiest = profile.busiestEngine;
  const inView = () => engines.forEach(
      engine => engine.cell.replaceChildren(shareBar(engine.series.mean(view.begin, view.end), engine.kind)));
  view.onChange(inView);
  inView();
  return [
    element(
        "p", {},
        `The busiest engine is ${busiest.name} ${kKindNames[busiest.kind]}, with ${
            Words.share(busiest.share)} of the ` +
            `${Words.time(profile.last - profile.first)} from the first span to the last. ` +
            (busiest.share >= 0.8    ? "It is the bottleneck." :
                 busiest.share < 0.5 ? "No engine is the bottleneck: look for what they wait for." :
                                       "")),
    element(
        "div", {className: "table"},
        element(
            "table", {}, element("caption", {className: "spoken"}, "Engines"),
            element(
                "thead", {},
                element(
                    "tr", {}, ...["Device", "Engine"].map(title => element("th", {scope: "col"}, title)),
                    ...["Busy", "Share of all", "Share of what is shown"].map(
                        title => element("th", {scope: "col", className: "number"}, title)))),
            element(
                "tbody", {},
                ...engines.map(
                    engine => element(
                        "tr", {}, element("td", {}, engine.name),
                        element("td", {}, swatch(engine.kind), kKindNames[engine.kind]),
                        element("td", {className: "number"}, Words.time(engine.series.integralTo(profile.last))),
                        element("td", {className: "number"}, shareBar(engine.share, engine.kind)), engine.cell)))))
  ];
}
