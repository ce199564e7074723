// The family tree of kernels as a strip: one column per kernel, drawn as SVG; arrow keys walk along it, Enter opens.
const SVG = "http://www.w3.org/2000/svg"
const STEP = 22, ROW = 28, TOP = 12
const MARKS = {
  best: "M0-9 2.6-3 9-2.6 4 1.6 5.8 8 0 4.4-5.8 8-4 1.6-9-2.6-2.6-3z",
  tied: "M0-9 2.6-3 9-2.6 4 1.6 5.8 8 0 4.4-5.8 8-4 1.6-9-2.6-2.6-3z",
  accepted: "M-5.5 0a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0-11 0z",
  correct: "M-4.6 0a4.6 4.6 0 1 0 9.2 0a4.6 4.6 0 1 0-9.2 0z",
  open: "M-4.6 0a4.6 4.6 0 1 0 9.2 0a4.6 4.6 0 1 0-9.2 0z",
  failed: "M-4.5-4.5 4.5 4.5M4.5-4.5-4.5 4.5",
}
const KEY = "★ best   ☆ tied with the best   ● accepted   ○ correct, pending or abandoned   ✕ failed   ◇ tuned   ⟲ roll-back"

function make(tag, attributes, className) {
  const node = document.createElementNS(SVG, tag)
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value)
  if (className) node.setAttribute("class", className)
  return node
}

const x = i => 14 + STEP * i
const y = lane => TOP + ROW * lane

function edge(nodes, i, parent, look) {
  const { lane } = nodes[i]
  if (parent === null) return null
  const from = [x(parent), y(nodes[parent].lane)], to = [x(i), y(lane)]
  const bend = Math.min(to[0] - from[0], STEP)
  const d = from[1] === to[1] ? `M${from}H${to[0]}`
    : to[1] > from[1] ? `M${from}C${from[0] + bend / 2} ${from[1]} ${from[0] + bend / 2} ${to[1]} ${from[0] + bend} ${to[1]}H${to[0]}`
      : `M${from}H${to[0] - bend}C${to[0] - bend / 2} ${from[1]} ${to[0] - bend / 2} ${to[1]} ${to}`
  return make("path", { d }, look)
}

function edges(nodes, i) {
  const { parent, second_parent, is_on_path } = nodes[i]
  return [edge(nodes, i, parent, is_on_path && nodes[parent]?.is_on_path ? "edge path" : "edge"),
    edge(nodes, i, second_parent, "edge second")]
}

function point(node, i, data, open) {
  const group = make("g", { transform: `translate(${x(i)} ${y(node.lane)})`, role: "button", "aria-label": node.name, "data-id": node.id },
    `node ${node.look}${node.is_on_path ? " path" : ""}${node.id === data.selected ? " selected" : ""}`)
  if (node.id === data.selected) group.setAttribute("aria-pressed", "true")
  group.append(make("rect", { x: -11, y: -11, width: 22, height: 33, rx: 5 }, "field"), make("path", { d: MARKS[node.look] }, "mark"))
  if (node.is_tuned) group.append(make("path", { d: "M0-11 7 0 0 11-7 0z" }, "tuned"))
  const title = document.createElementNS(SVG, "title")
  title.textContent = node.name
  const number = make("text", { y: 19, "text-anchor": "middle", "aria-hidden": "true" }, "number")
  number.textContent = node.number
  group.append(title, number)
  group.onclick = () => open(node.id)
  return group
}

function walk(event, points, open) {
  const at = points.indexOf(event.target.closest(".node"))
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: points.length - 1 }[event.key]
  if (event.key === "Enter" || event.key === " ") open(points[at].dataset.id)
  else if (to === undefined || !points[to]) return
  else { points[at].setAttribute("tabindex", -1); points[to].setAttribute("tabindex", 0); points[to].focus() }
  event.preventDefault()
}

function paint(data, parentElement, open) {
  const scroll = parentElement.querySelector(".scroll")
  const wanted = JSON.stringify(data)
  if (scroll.drawn === wanted) return
  const focused = parentElement.activeElement?.dataset?.id
  const isAtEnd = !scroll.drawn || scroll.scrollLeft + scroll.clientWidth > scroll.scrollWidth - 2 * STEP
  const wasSelected = scroll.selected
  Object.assign(scroll, { drawn: wanted, selected: data.selected })
  const { nodes } = data
  const height = y(Math.max(...nodes.map(n => n.lane))) + 23
  // Once tall it stays so in its run: what stands below keeps its place from kernel to kernel.
  const tallest = scroll.begins === nodes[0].id ? Math.max(scroll.tallest, height) : height
  Object.assign(scroll, { tallest, begins: nodes[0].id }).style.minHeight = `${tallest}px`
  const picture = make("svg", { width: x(nodes.length - 1) + 16, height })
  const points = nodes.map((node, i) => point(node, i, data, open))
  for (const number of data.roll_backs) {
    const at = nodes.findIndex(node => node.number >= number)
    if (at < 0) continue
    const left = x(at) - STEP / 2
    const sign = make("text", { x: left - 4, y: height - 2 }, "back")
    sign.textContent = "⟲"
    picture.append(make("path", { d: `M${left} 2V${height - 12}` }, "cut"), sign)
  }
  picture.append(...nodes.flatMap((_, i) => edges(nodes, i)).filter(Boolean).sort((a, b) => a.classList.length - b.classList.length), ...points)
  scroll.replaceChildren(picture)
  scroll.setAttribute("aria-label", `Lineage: which kernel was made from which${data.note ? `, ${data.note}` : ""}`)
  parentElement.querySelector(".what").textContent = data.note ? `Lineage · ${data.note}` : "Lineage"
  parentElement.querySelector(".key").textContent = KEY
  const current = points.find(p => p.dataset.id === data.selected) || points.at(-1)
  current.setAttribute("tabindex", 0)
  picture.onkeydown = event => walk(event, points, open)
  if (focused) points.find(p => p.dataset.id === focused)?.focus()
  if (data.selected !== wasSelected && data.selected) {
    const left = x(points.indexOf(current))
    if (left < scroll.scrollLeft + STEP || left > scroll.scrollLeft + scroll.clientWidth - STEP) scroll.scrollLeft = left - scroll.clientWidth / 2
  } else if (isAtEnd) scroll.scrollLeft = scroll.scrollWidth
}

export default function ({ data, parentElement, setTriggerValue }) {
  const open = id => setTriggerValue("opened", id)
  onceLifted(parentElement.querySelector(".scroll"), () => paint(data, parentElement, open))
}
