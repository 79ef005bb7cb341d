"use strict";
// Pipelines: how busy the stages of each were, in the order in which items pass them, and which one limited the rest.

function pipelinesPanel(profile, {showRange}) {
  if (profile.pipelines.length === 0) return [element("p", {className: "quiet"}, "No pipeline is recorded.")];
  const left = profile.pipelines.length - kRowsShown;
  return [
    ...profile.pipelines.slice(0, kRowsShown).map((pipeline, at) => pipelineSection(pipeline, at, showRange)),
    ...(left > 0 ? [element("p", {className: "quiet"}, `${Words.many(left, "pipeline")} more are not shown.`)] : [])
  ];
}

function pipelineSection(pipeline, at, showRange) {
  return element(
      "section", {}, element("h3", {}, `Pipeline ${Words.count(at + 1)}`),
      element("p", {}, pipelineWords(pipeline), ...bottleneckWords(pipeline)), stageTable(pipeline),
      element("p", {className: "ways"}, button("Its time", () => showRange(pipeline.begin_us, pipeline.end_us))));
}

function pipelineWords(pipeline) {
  const counts = [
    ["failed", pipeline.failed], ["dropped", pipeline.dropped], ["refused", pipeline.refused],
    ["retried", pipeline.retries], ["still inside", pipeline.inside]
  ].filter(([, count]) => count > 0);
  return `${Words.many(pipeline.accepted, "item")} in ${Words.time(pipeline.end_us - pipeline.begin_us)}, at most ` +
      `${Words.count(pipeline.window)} at a time` +
      counts.map(([word, count]) => `, ${Words.count(count)} ${word}`).join("") + ". ";
}

function bottleneckWords({stages, bottleneck}) {
  if (bottleneck < 0) return ["No stage has done anything."];
  const {name, busy} = stages[bottleneck];
  return ["The busiest stage is ", named(name), `, with ${Words.share(busy)} of its capacity in use.`];
}

function stageTable({stages, bottleneck}) {
  const number = text => element("td", {className: "number"}, text);
  return element(
      "div", {className: "table"},
      element(
          "table", {}, element("caption", {className: "spoken"}, "Stages"),
          element(
              "thead", {},
              element(
                  "tr", {}, element("th", {scope: "col"}, "Stage"),
                  ...["Capacity", "Busy", "Done", "Failed", "Waiting"].map(
                      title => element("th", {scope: "col", className: "number"}, title)))),
          element(
              "tbody", {},
              ...stages.map(
                  (stage, at) => element(
                      "tr", {}, element("td", {}, named(stage.name), at === bottleneck ? " (bottleneck)" : ""),
                      number(Words.count(stage.capacity)), number(shareBar(stage.busy)),
                      number(Words.count(stage.done)), number(Words.count(stage.failed)),
                      number(Words.count(stage.waiting)))))));
}
