// The margin of a line: how much of the time it took. `spot` is [level, text, meaning] or nothing, as plain text.
const safe = text => text.replace(/[&<>"]/g, sign => `&#${sign.charCodeAt(0)};`)
const heatCell = (spot, tag, look = "") => spot
  ? `<${tag} class="heat ${look}" style="--heat:${Math.round(60 * spot[0])}%" title="${safe(spot[2])}">${safe(spot[1])}</${tag}>`
  : `<${tag} class="heat ${look}"></${tag}>`
