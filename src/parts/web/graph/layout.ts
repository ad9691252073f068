/**
 * Places the nodes of a plan: in layers from left to right, each node after all that it waits for, and near to them. Pure.
 * A layer with very many nodes takes several columns, so that the drawing does not become too high.
 */

export interface GraphNode {
  id: string;
  after: readonly string[];
}

export interface Place {
  x: number;
  y: number;
}

export interface Layout {
  width: number;
  height: number;
  /** The top left corner of each node's box. */
  places: Map<string, Place>;
  /** From a node to one that waits for it. */
  edges: [from: string, to: string][];
}

export const BOX = { width: 170, height: 28 };
/** The distance between layers (`x`), and between the boxes of a column (`y`). */
export const GAP = { x: 60, y: 12 };
/** Columns of one layer are nearer to each other than layers. */
const COLUMN_GAP = 14;
/** A layer takes a second column only when it has more rows than this. */
const ROWS_MIN = 20;
const SWEEPS = 8;

export function layOut(nodes: readonly GraphNode[]): Layout {
  const known = new Set(nodes.map(({ id }) => id));
  const edges = nodes.flatMap(({ id, after }) =>
    [...new Set(after)]
      .filter((one) => known.has(one) && one !== id)
      .map((one): [string, string] => [one, id]),
  );
  const layers = orderLayers(layersOf(nodes, edges), edges);
  const places = new Map<string, Place>();
  const rowsMax = Math.max(ROWS_MIN, Math.ceil(Math.sqrt(nodes.length * 3)));
  let x = 0;
  let height = BOX.height;
  for (const layer of layers) {
    const columns = Math.ceil(layer.length / rowsMax);
    const rows = Math.ceil(layer.length / columns);
    layer.forEach((id, at) => {
      const column = Math.floor(at / rows);
      const y = (at % rows) * (BOX.height + GAP.y);
      places.set(id, { x: x + column * (BOX.width + COLUMN_GAP), y });
      height = Math.max(height, y + BOX.height);
    });
    x += columns * (BOX.width + COLUMN_GAP) - COLUMN_GAP + GAP.x;
  }
  centre(layers, places, height);
  return { width: Math.max(BOX.width, x - GAP.x), height, places, edges };
}

/** Puts each node one layer after the last of those that it waits for. In a circle, which no valid plan has, some are too early. */
function layersOf(nodes: readonly GraphNode[], edges: readonly [string, string][]): string[][] {
  const missing = new Map(nodes.map(({ id }) => [id, 0]));
  const followers = new Map<string, string[]>();
  for (const [from, to] of edges) {
    missing.set(to, (missing.get(to) ?? 0) + 1);
    const list = followers.get(from);
    if (list === undefined) followers.set(from, [to]);
    else list.push(to);
  }
  const layerOf = new Map<string, number>();
  const ready = nodes.flatMap(({ id }) => (missing.get(id) === 0 ? [id] : []));
  for (const id of ready) layerOf.set(id, 0);
  for (let at = 0; at < ready.length; at++) {
    const id = ready[at] ?? "";
    for (const next of followers.get(id) ?? []) {
      layerOf.set(next, Math.max(layerOf.get(next) ?? 0, (layerOf.get(id) ?? 0) + 1));
      const left = (missing.get(next) ?? 0) - 1;
      missing.set(next, left);
      if (left === 0) ready.push(next);
    }
  }
  const layers: string[][] = [];
  for (const { id } of nodes) {
    const layer = layerOf.get(id) ?? 0;
    while (layers.length <= layer) layers.push([]);
    layers[layer]?.push(id);
  }
  return layers;
}

/** Moves each node near to the middle of its neighbours, so that fewer lines cross. */
function orderLayers(layers: string[][], edges: readonly [string, string][]): string[][] {
  const before = neighbours(edges.map(([from, to]) => [to, from]));
  const after = neighbours(edges);
  const rank = new Map<string, number>();
  const note = (layer: readonly string[]): void => {
    layer.forEach((id, at) => {
      rank.set(id, at / layer.length);
    });
  };
  layers.forEach(note);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isDown = sweep % 2 === 0;
    const ofId = isDown ? before : after;
    for (const layer of isDown ? layers : layers.toReversed()) {
      const middle = new Map(layer.map((id) => [id, middleOf(ofId.get(id), rank, rank.get(id))]));
      layer.sort((a, b) => (middle.get(a) ?? 0) - (middle.get(b) ?? 0));
      note(layer);
    }
  }
  return layers;
}

function neighbours(edges: readonly (readonly [string, string])[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [from, to] of edges) {
    const list = found.get(from);
    if (list === undefined) found.set(from, [to]);
    else list.push(to);
  }
  return found;
}

function middleOf(ids: string[] | undefined, rank: Map<string, number>, own = 0): number {
  if (ids === undefined || ids.length === 0) return own;
  return ids.reduce((sum, id) => sum + (rank.get(id) ?? 0), 0) / ids.length;
}

/** Moves a short layer to the middle of the height. */
function centre(layers: readonly string[][], places: Map<string, Place>, height: number): void {
  for (const layer of layers) {
    const low = Math.max(0, ...layer.map((id) => (places.get(id)?.y ?? 0) + BOX.height));
    const shift = Math.round((height - low) / 2);
    for (const id of layer) {
      const place = places.get(id);
      if (place !== undefined) place.y += shift;
    }
  }
}
