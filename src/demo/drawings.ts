/** The pictures of the demo as SVG. They have few shapes and no text, so that they look the same on every machine. */

const shape = (name: string, attributes: Record<string, string | number>): string =>
  `<${name} ${Object.entries(attributes)
    .map(([key, value]) => `${key}="${value}"`)
    .join(" ")}/>`;
const rect = (x: number, y: number, width: number, height: number, fill: string, rx = 0) =>
  shape("rect", { x, y, width, height, fill, rx });
const circle = (cx: number, cy: number, r: number, fill: string) => shape("circle", { cx, cy, r, fill });
const times = (count: number, draw: (index: number) => string) =>
  Array.from({ length: count }, (_, i) => draw(i)).join("");

const svg = (width: number, height: number, content: string) =>
  Buffer.from(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">${content}</svg>`,
  );

const brick = "#b4643c";
const leaf = "#5f8a4f";
const tree = (x: number, y: number, size: number) =>
  rect(x - size / 12, y, size / 6, size * 0.7, "#6b4a2f") + circle(x, y, size / 2, leaf);

/** Eight storeys of brick behind trees. */
export const exterior = (sky: string): Buffer =>
  svg(
    1200,
    800,
    rect(0, 0, 1200, 800, sky) +
      circle(980, 150, 60, "#fff3c4") +
      rect(220, 140, 760, 560, brick) +
      times(8 * 9, (i) =>
        rect(255 + (i % 9) * 78, 165 + Math.floor(i / 9) * 66, 44, 42, (i * 7) % 5 ? "#dfeaf0" : "#ffd98a"),
      ) +
      rect(0, 690, 1200, 110, "#8fae72") +
      times(7, (i) => tree(90 + i * 172, 650, 90 + (i % 3) * 30)),
  );

/** A living room with a balcony door. */
export const interior = (): Buffer =>
  svg(
    1200,
    800,
    rect(0, 0, 1200, 800, "#f3ede2") +
      rect(0, 600, 1200, 200, "#c9a77c") +
      rect(640, 120, 420, 480, "#cfe3ee") +
      rect(845, 120, 10, 480, "#7d8890") +
      rect(120, 440, 420, 150, "#62788a", 24) +
      rect(150, 380, 360, 110, "#718799", 24) +
      rect(250, 620, 240, 40, "#8a5f3c", 8) +
      circle(200, 200, 70, "#e3b75f"),
  );

/** The garden from above. */
export const garden = (): Buffer =>
  svg(
    1200,
    800,
    rect(0, 0, 1200, 800, "#d9d2c3") +
      rect(150, 120, 900, 560, "#9cbf80", 60) +
      rect(570, 120, 60, 560, "#e6dcc5") +
      circle(600, 400, 110, "#7fb4c8") +
      times(12, (i) => circle(230 + (i % 6) * 148, i < 6 ? 200 : 600, 36 + (i % 3) * 8, leaf)),
  );

/** Streets, houses and the garden of the site. */
export const site = (): Buffer =>
  svg(
    1000,
    1000,
    rect(0, 0, 1000, 1000, "#eeeae0") +
      rect(0, 450, 1000, 70, "#b9bcc0") +
      rect(460, 0, 70, 1000, "#b9bcc0") +
      times(12, (i) => rect(60 + (i % 6) * 65, 80 + Math.floor(i / 6) * 180, 50, 130, brick, 4)) +
      rect(580, 80, 360, 320, "#9cbf80", 30) +
      times(10, (i) => rect(580 + (i % 5) * 74, 580 + Math.floor(i / 5) * 190, 58, 150, "#c98b5e", 4)),
  );

/** A lark's wing over a roof. */
export const mark = (background: string): Buffer =>
  svg(
    400,
    400,
    rect(0, 0, 400, 400, background) +
      `<path d="M60 260 L200 130 L340 260" fill="none" stroke="#fff" stroke-width="34"/>` +
      `<path d="M90 330 Q200 250 310 330" fill="none" stroke="#ffd98a" stroke-width="26"/>`,
  );
