// Draws a Plotly figure in place: new data goes through Plotly.react, so zoom, hover and node survive it.
// Colours in the figure are theme names ("@green-color"), resolved here, so that one figure suits light and dark.
const zoomOf = (window.tilewrightZoom ??= new Map())

const AXIS_BUTTONS = ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]

function plotly() {
  window.tilewrightPlotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script")
    script.src = new URL("assets/plotly.min.js", document.baseURI).href
    script.onload = () => resolve(window.Plotly)
    script.onerror = () => reject(new Error("the chart library could not be loaded"))
    document.head.append(script)
  })
  return window.tilewrightPlotly
}

function themed(value, style) {
  if (typeof value === "string" && value.startsWith("@")) {
    const [name, alpha] = value.slice(1).split("/")
    const colour = style.getPropertyValue(`--st-${name}`).trim()
    return alpha ? `color-mix(in srgb, ${colour} ${alpha}%, transparent)` : colour
  }
  if (Array.isArray(value)) return value.map(item => themed(item, style))
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, themed(item, style)]))
  return value
}

// Plotly reads colours with its own parser, which does not know color-mix: let the browser compute it first.
function computed(value, probe) {
  if (typeof value === "string" && value.startsWith("color-mix(")) {
    probe.style.color = value
    const parts = getComputedStyle(probe).color.match(/[\d.]+/g).map(Number)
    const scale = getComputedStyle(probe).color.startsWith("color(") ? 255 : 1
    return `rgba(${parts.slice(0, 3).map(p => Math.round(p * scale)).join(",")},${parts[3] ?? 1})`
  }
  if (Array.isArray(value)) return value.map(item => computed(item, probe))
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, computed(item, probe)]))
  return value
}

// A label may come in several lengths, the longest first: the first that there is room for is drawn. A shape's has room
// inside the shape; a note's up to the next such note, or to the end of the axis, or its part of the chart's width.
function fitLabels({ shapes = [], annotations = [], xaxis, margin }, width) {
  if (!xaxis?.range) return
  const [low, high] = xaxis.range
  const fit = (label, span) => {
    const room = ((width - margin.l - margin.r) * span) / (high - low)
    label.text = label.texts.find(text => 6.2 * text.length < room) ?? label.texts.at(-1)
    delete label.texts
  }
  for (const { label, x0, x1 } of shapes) if (label?.texts) fit(label, x1 - x0)
  for (const note of annotations) if (note.room) fit(note, note.room * (high - low))
  const notes = annotations.filter(note => note.texts).sort((a, b) => a.x - b.x)
  notes.forEach((note, i) => fit(note, (notes[i + 1]?.x ?? high) - note.x))
}

// A legend below the chart takes as many rows as it needs; ticks and title of the axis keep their place above it.
const AXIS_PX = 46
function roomForLegend(host, { legend, margin }) {
  if (legend?.yref !== "container") return 0
  const drawn = host.querySelector(".legend")
  return Math.max(margin.b, drawn ? Math.ceil(drawn.getBBox().height) + AXIS_PX : 0)
}

async function settle(host, given) {
  const room = host.legendRoom = roomForLegend(host, given)
  if (room && room !== host.layout.margin.b) await window.Plotly.relayout(host, { "margin.b": room })
  await stack(host, given)
}

function remembered(layout, key) {
  for (const [axis, range] of Object.entries(zoomOf.get(key) || {}))
    layout[axis] = { ...layout[axis], range, autorange: false }
  return layout
}

function remember(host, key, change) {
  const zoom = { ...zoomOf.get(key) }
  for (const axis of ["xaxis", "yaxis"]) {
    // Trap: a double click puts an axis with a range of its own back to that range, and says so in another form.
    if (change[`${axis}.autorange`] || `${axis}.range` in change) delete zoom[axis]
    else if (`${axis}.range[0]` in change) zoom[axis] = [change[`${axis}.range[0]`], change[`${axis}.range[1]`]]
  }
  zoomOf.set(key, zoom)
}

// Names on the chart stand one above the other where they would meet: each is moved, as little as can be, to where the
// browser has measured that it covers none of those before it. Only those that ask for it (`meta.stacks`).
const LINE_PX = 17
async function stack(host, given) {
  if (!given.meta?.stacks || !given.annotations?.length) return
  const texts = [...host.querySelectorAll(".annotation")]
  const { top, bottom } = host.querySelector("svg.main-svg").getBoundingClientRect()
  const placed = [], change = {}
  const order = texts.map((node, i) => [node, i]).sort(([, a], [, b]) => weight(given.annotations[b]) - weight(given.annotations[a]))
  for (const [node, i] of order) {
    const was = host.layout.annotations[i].yshift ?? 0, wanted = given.annotations[i].yshift ?? 0
    const box = node.getBoundingClientRect(), y = box.y + was - wanted
    const isFree = lift => placed.every(other => box.right <= other.left || other.right <= box.left
      || y - lift + box.height <= other.top || other.bottom <= y - lift) && y - lift >= top && y - lift + box.height <= bottom
    const lift = LIFTS.find(isFree) ?? 0
    placed.push({ left: box.left, right: box.right, top: y - lift, bottom: y - lift + box.height })
    if (wanted + lift !== was) change[`annotations[${i}].yshift`] = wanted + lift
  }
  if (Object.keys(change).length) await window.Plotly.relayout(host, change)
}
const LIFTS = [0, ...Array.from({ length: 24 }, (_, i) => (i + 1) * LINE_PX / 4).flatMap(px => [px, -px])]
const weight = note => note.font?.size ?? 12  // the best kernel's number stays, and small names give way

// What a point is, beside it: as wide as a short line, and where it hides the fewest of the lines and points around it.
const TIP_PX = 14
const SETTLED_MS = 400  // after a drawing and the resizing that may follow it
function tip(host) {
  const box = document.createElement("div")
  box.className = "tilewright-tip"
  box.hidden = true
  host.append(box)
  return box
}

function showTip(host, box, event) {
  const point = event.points.find(p => typeof p.text === "string")
  if (!point || !host.layout.meta?.tips) return
  box.replaceChildren(...point.text.split("\n").map(text => Object.assign(document.createElement("div"), { textContent: text })))
  box.hidden = false
  const at = [point.xaxis._offset + point.xaxis.d2p(point.x), point.yaxis._offset + point.yaxis.d2p(point.y)]
  const size = [box.offsetWidth, box.offsetHeight], lines = linePoints(host)
  const least = (corner, k) => Math.max(4, Math.min(corner, [host.clientWidth, host.clientHeight][k] - size[k] - 4))
  const places = [-1.25, -1, -0.5, 0, 0.25].flatMap(x => [-3, -2, -1.4, -1, 0, 0.4, 1, 2].map(y => [
    least(at[0] + x * size[0] + (x >= 0 ? TIP_PX : x === -0.5 ? 0 : -TIP_PX), 0),
    least(at[1] + y * size[1] + (y >= 0 ? TIP_PX : -TIP_PX), 1)]))
  const hidden = ([x, y]) => lines.filter(p => p[0] > x - 6 && p[0] < x + size[0] + 6 && p[1] > y - 6 && p[1] < y + size[1] + 6).length
  const far = ([x, y]) => Math.hypot(x + size[0] / 2 - at[0], y + size[1] / 2 - at[1])
  const [x, y] = places.map(place => [100 * hidden(place) + far(place), place]).sort((a, b) => a[0] - b[0])[0][1]
  box.style.transform = `translate(${x}px, ${y}px)`
}

// The drawn lines and points as places on the chart, a few pixels apart.
function linePoints(host) {
  const found = []
  for (const trace of host._fullData) {
    if (trace.visible !== true || trace.opacity === 0 || trace.fill === "toself") continue
    const x = host._fullLayout[trace.xaxis.replace("x", "xaxis")], y = host._fullLayout[trace.yaxis.replace("y", "yaxis")]
    const spots = [...trace.x].map((value, i) => value === null ? null : [x._offset + x.d2p(value), y._offset + y.d2p(trace.y[i])])
    spots.forEach((spot, i) => {
      if (!spot) return
      found.push(spot)
      if (trace.mode !== "lines" || !spots[i - 1]) return
      const [from, corner] = [spots[i - 1], trace.line.shape === "hv" ? [spot[0], spots[i - 1][1]] : spot]
      for (const [a, b] of [[from, corner], [corner, spot]]) {
        const count = Math.ceil(Math.hypot(b[0] - a[0], b[1] - a[1]) / 8)
        for (let k = 1; k < count; k++) found.push([a[0] + (b[0] - a[0]) * k / count, a[1] + (b[1] - a[1]) * k / count])
      }
    })
  }
  return found
}

async function draw(host, data, current) {
  const Plotly = await plotly()
  if (!host.isConnected) return
  const style = getComputedStyle(host)
  const wanted = JSON.stringify([data, style.getPropertyValue("--st-background-color"), host.clientWidth])
  if (host.dataset.drawn === wanted) return
  const isFirst = !host.dataset.drawn
  host.dataset.drawn = wanted
  const figure = computed(themed(data.figure, style), host.parentElement.querySelector(".probe"))
  fitLabels(figure.layout, host.clientWidth)
  figure.layout.font = { ...figure.layout.font, family: style.getPropertyValue("--st-font") || "sans-serif" }
  const given = { ...figure.layout, margin: { ...figure.layout.margin } }
  if (host.legendRoom) figure.layout.margin.b = Math.max(given.margin.b, host.legendRoom)
  await Plotly.react(host, figure.data, remembered(figure.layout, data.zoom_key), {
    displaylogo: false, responsive: true, scrollZoom: false, doubleClick: "reset+autosize", doubleClickDelay: 250,
    modeBarButtons: [[...(figure.layout.xaxis ? AXIS_BUTTONS : []), "toImage"]],
  })
  if (host.dataset.drawn === wanted) {  // else another width or theme has been drawn meanwhile, with room of its own
    host.settle = () => settle(host, given)
    await host.settle()
  }
  if (host.tip) host.tip.hidden = true
  if (!isFirst) return
  host.tip = tip(host)
  host.on("plotly_hover", event => showTip(host, host.tip, event))
  host.on("plotly_unhover", () => { host.tip.hidden = true })
  const openPoint = event => {
    host.tip.hidden = true
    const point = event.points.find(p => p.customdata)
    if (point) host.current.open(point.customdata)
  }
  host.on("plotly_click", openPoint)
  host.on("plotly_icicleclick", event => {
    openPoint(event)
    return false  // what is shown inside is the page's to say
  })
  host.on("plotly_relayout", change => {
    remember(host, host.current.zoomKey, change)
    if (Object.keys(change).some(key => key.includes("axis"))) host.settle?.()
  })
  // Drawn anew for another width, in which other labels fit.
  const follow = () => draw(host, host.current.data).catch(() => Plotly.Plots.resize(host))
  new ResizeObserver(() => host.isConnected && Plotly.Plots.resize(host)?.then(follow)).observe(host)
}

// Trap: a drawing that is under way while the width changes can leave a chart that is as wide as it was, and a legend with
// fewer rows than it has now.
async function fit(host) {
  const drawn = host.isConnected && host._fullLayout?.width
  if (!drawn || !host.clientWidth) return
  if (Math.abs(drawn - host.clientWidth) > 2) await (await plotly()).Plots.resize(host)
  await host.settle?.()
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component
  const host = parentElement.querySelector(".figure")
  host.style.height = typeof data.height === "number" ? `${data.height}px` : data.height
  host.style.minWidth = data.least_width ? `${data.least_width}px` : ""
  host.parentElement.style.overflowX = data.least_width ? "auto" : ""
  if (data.least_width) host.parentElement.tabIndex = 0
  host.setAttribute("aria-label", data.name)
  host.current = { open: id => setTriggerValue("clicked", id), zoomKey: data.zoom_key, data }
  const fail = error => { host.textContent = `${data.name}: ${error.message}` }
  onceLifted(host, () => draw(host, data).catch(fail).then(() => setTimeout(fit, SETTLED_MS, host)))
}
