/** Makes the lines of a drawing, from each box to those that wait for it. A line passes between boxes and never behind one. Pure. */
import { BOX, GAP, type Layout, type Place } from "./layout.ts";

const PITCH = BOX.height + GAP.y;
/** A line over more columns than this stays in its lane as long as it can, so that its path text stays short. */
const SLOPING_MAX = 8;

interface Columns {
  /** From left to right. */
  xs: number[];
  /** The top of the first box of each column, and of its last one. */
  ends: Map<number, [first: number, last: number]>;
}

/** SVG paths, in the order of the edges. */
export function edgePaths({ places, edges }: Pick<Layout, "places" | "edges">): string[] {
  const columns = columnsOf(places);
  const at = (id: string): Place => places.get(id) ?? { x: 0, y: 0 };
  return edges.map(([from, to]) => pathOf(at(from), at(to), columns));
}

function columnsOf(places: Layout["places"]): Columns {
  const ends: Columns["ends"] = new Map();
  for (const { x, y } of places.values()) {
    const [first, last] = ends.get(x) ?? [y, y];
    ends.set(x, [Math.min(first, y), Math.max(last, y)]);
  }
  return { xs: [...ends.keys()].sort((a, b) => a - b), ends };
}

function pathOf(a: Place, b: Place, { xs, ends }: Columns): string {
  const [startX, startY] = [a.x + BOX.width, a.y + BOX.height / 2];
  const [endX, endY] = [b.x, b.y + BOX.height / 2];
  const between = xs.slice(xs.indexOf(a.x) + 1, Math.max(0, xs.indexOf(b.x)));
  const slope = between.length > SLOPING_MAX ? 0 : (endY - startY) / (endX - startX);
  let path = `M${startX} ${startY}`;
  let [x, y] = [startX, startY];
  for (const left of between) {
    const wanted = slope === 0 ? y : startY + slope * (left + BOX.width / 2 - startX);
    const lane = laneAt(wanted, ends.get(left) ?? [0, 0]);
    path += lane === y && x !== startX ? "" : curve(x, y, left, lane);
    [x, y] = [left + BOX.width, lane];
    path += `H${x}`;
  }
  return path + curve(x, y, endX, endY);
}

/** The nearest height at which a line passes no box of a column. */
function laneAt(y: number, [first, last]: readonly [number, number]): number {
  const whole = Math.round(y);
  if (whole < first || whole > last + BOX.height) return whole;
  // Lanes are as far apart as the boxes of a column.
  return first - GAP.y / 2 + Math.round((y - first + GAP.y / 2) / PITCH) * PITCH;
}

function curve(x1: number, y1: number, x2: number, y2: number): string {
  // A line leads back only when nodes wait for each other in a circle.
  const bend = x2 > x1 ? Math.round((x2 - x1) / 2) : Math.max(20, (x1 - x2) / 2);
  return `C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}
