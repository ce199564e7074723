// A table of links: text is always set as text, ages tick by themselves, a click or Enter opens a row.
const SVG = "http://www.w3.org/2000/svg"
const ICONS = {
  running: "M8 5v14l11-7z",
  starting: "M12 4a8 8 0 1 0 8 8h-2.4A5.6 5.6 0 1 1 12 6.4z",
  paused: "M7 5h3.5v14H7zM13.5 5H17v14h-3.5z",
  waiting: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zm1 4v4.6l3.4 2-.9 1.6L11 12.7V7z",
  best: "M12.0 2.1L14.8 8.8L22.0 9.4L16.5 14.1L18.2 21.1L12.0 17.3L5.8 21.1L7.5 14.1L2.0 9.4L9.2 8.8z",
  tied: "M12.0 2.1L14.8 8.8L22.0 9.4L16.5 14.1L18.2 21.1L12.0 17.3L5.8 21.1L7.5 14.1L2.0 9.4L9.2 8.8zM10.3 10.2L5.3 10.4L9.2 13.5L7.9 18.3L12.0 15.5L16.1 18.3L14.8 13.5L18.7 10.4L13.7 10.2L12.0 5.6z",
  finished: "M9.2 16.6 4.8 12.2 3.4 13.6l5.8 5.8L21 7.6l-1.4-1.4z",
  stopped: "M6 6h12v12H6z",
  failed: "M18.4 7 17 5.6l-5 5-5-5L5.6 7l5 5-5 5L7 18.4l5-5 5 5 1.4-1.4-5-5z",
  held: "M9.2 16.6 4.8 12.2 3.4 13.6l5.8 5.8L21 7.6l-1.4-1.4z",
  flagged: "M6 3v18h2v-7h5l1 2h6V6h-6l-1-3z",
  broken: "M18.4 7 17 5.6l-5 5-5-5L5.6 7l5 5-5 5L7 18.4l5-5 5 5 1.4-1.4-5-5z",
  absent: "M5 10.8h14v2.6H5z",
  refused: "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20zM6 10.5h12v3H6z",
  undo: "M12.5 8c-2.65 0-5.05.99-6.9 2.6L2 7v9h9l-3.62-3.62c1.39-1.16 3.16-1.88 5.12-1.88 3.54 0 6.55 2.31 7.6 5.5l2.37-.78C21.08 11.03 17.15 8 12.5 8z",
  label: "M21.4 11.6 12.4 2.6A2 2 0 0 0 11 2H4a2 2 0 0 0-2 2v7c0 .5.2 1 .6 1.4l9 9a2 2 0 0 0 2.8 0l7-7a2 2 0 0 0 0-2.8zM6.5 8A1.5 1.5 0 1 1 6.5 5a1.5 1.5 0 0 1 0 3z",
  archived: "M3 4h18v4H3zm1 6h16v10H4zm5 2v2h6v-2z",
  lost: "M12 3 1.8 20.5h20.4zm1 14.5h-2v-2h2zm0-3.5h-2V9.5h2z",
}

function make(tag, className, text) {
  const node = document.createElement(tag)
  if (className) node.className = className
  if (text !== undefined && text !== null) node.textContent = text
  return node
}

// Roles are named because a folded row is no longer laid out as a table row, and would no longer be read as one.
function as(role, node) {
  node.setAttribute("role", role)
  return node
}

function vector(viewBox, className) {
  const node = document.createElementNS(SVG, "svg")
  node.setAttribute("viewBox", viewBox)
  node.setAttribute("class", className)
  node.setAttribute("aria-hidden", "true")
  return node
}

function follow(link, href, go) {
  link.href = href
  link.onclick = event => {
    event.stopPropagation()
    if (event.ctrlKey || event.metaKey || event.shiftKey) return
    event.preventDefault()
    go()
  }
}

function icon(name) {
  const node = vector("0 0 24 24", "icon")
  const path = document.createElementNS(SVG, "path")
  path.setAttribute("d", ICONS[name])
  node.append(path)
  return node
}

function button(cell, open) {
  const node = make("button", "small")
  node.type = "button"
  node.title = cell.off || cell.text
  node.disabled = Boolean(cell.off)
  node.setAttribute("aria-label", cell.off ? `${cell.name}: ${cell.off}` : cell.name)
  if (ICONS[cell.icon]) node.append(icon(cell.icon))
  node.append(make("span", "said", cell.text))
  node.onclick = event => {
    event.stopPropagation()
    open(cell.opens)
  }
  return node
}

function pill(cell, open) {
  const node = make(cell.opens ? "a" : "span", `pill ${cell.tone || "gray"}`)
  if (cell.opens) follow(node, cell.href, () => open(cell.opens))
  if (ICONS[cell.icon]) node.append(icon(cell.icon))
  node.append(make("span", "", cell.text))
  return node
}

function bar(cell) {
  const node = make("div", "bar")
  const track = make("div", "track")
  const fill = make("div", "fill")
  fill.style.width = `${Math.round(100 * Math.min(1, cell.share || 0))}%`
  track.append(fill)
  node.append(track, make("span", "", cell.text))
  return node
}

function spark(cell) {
  const points = cell.points || []
  if (!points.length) return make("span", "muted", "–")
  const logs = points.map(value => Math.log(value))
  const low = Math.min(0, ...logs), high = Math.max(0.1, ...logs)
  const x = i => (logs.length > 1 ? 2 + (96 * i) / (logs.length - 1) : 50)  // a single point is no line: in the middle
  const y = value => 26 - (22 * (value - low)) / (high - low)
  const node = vector("0 0 100 28", "spark")
  const base = document.createElementNS(SVG, "path")
  base.setAttribute("d", `M2 ${y(0)}H98`)
  base.setAttribute("class", "base")
  const line = document.createElementNS(SVG, "path")
  line.setAttribute("d", logs.map((value, i) => `${i ? "H" + x(i) + "V" + y(value) : "M2 " + y(value)}`).join(""))
  line.setAttribute("class", "line")
  const end = document.createElementNS(SVG, "circle")
  end.setAttribute("cx", x(logs.length - 1)); end.setAttribute("cy", y(logs.at(-1))); end.setAttribute("r", 2.4)
  node.append(base, line, end)
  return node
}

function ageText(since) {
  const s = Math.max(0, Date.now() / 1000 - since)
  if (s < 60) return `${Math.floor(s)} s ago`
  if (s < 3600) return `${Math.floor(s / 60)} min ago`
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`
  return `${Math.floor(s / 86400)} d ago`
}

function age(cell) {
  const node = make("span", "age", cell.since ? ageText(cell.since) : "–")
  if (cell.since) node.dataset.since = cell.since
  return node
}

function toggle(cell, open) {
  const node = make("button", "switch", cell.is_on ? "on" : "off")
  node.type = "button"
  node.setAttribute("role", "switch")
  node.setAttribute("aria-checked", cell.is_on)
  node.setAttribute("aria-label", cell.name)
  node.onclick = event => {
    event.stopPropagation()
    open(cell.opens)
  }
  return node
}

const KINDS = { pill, bar, spark, age, switch: toggle }

function fillCell(td, cell, row, open) {
  if (cell === null || cell === undefined) return td.append(make("span", "muted", "–"))
  if (typeof cell !== "object") return td.append(make("span", "", cell))
  if (cell.title) td.title = cell.title
  if (cell.link) {
    const link = make("a", "name", cell.text)
    follow(link, row.href, () => open(row.id))
    td.append(link)
  } else if (KINDS[cell.kind]) td.append(KINDS[cell.kind](cell, open))
  else td.append(make("span", cell.tone ? `tone-${cell.tone}` : "", cell.text))
  for (const badge of cell.badges || []) td.append(pill(badge, open))
  if (cell.note) td.append(make("div", "note", cell.note))
  if (cell.buttons) {
    const box = make("div", "buttons")
    box.append(...cell.buttons.map(one => button(one, open)))
    td.append(box)
  }
}

// Which rows are ticked stays in the browser until a button above the table asks for it.
function tick(name, isOn, change) {
  const box = make("input")
  box.type = "checkbox"
  box.checked = isOn
  box.setAttribute("aria-label", name)
  box.onclick = event => event.stopPropagation()
  box.onchange = () => change(box.checked)
  return box
}

function tickCell(tag, role, box) {
  const cell = as(role, make(tag, "tick"))
  cell.onclick = event => { event.stopPropagation(); if (event.target === cell) box.click() }
  cell.append(box)
  return cell
}

function paintBulk(table, data, open) {
  const bar = table.parentElement.previousElementSibling, count = table.ticked.size
  bar.hidden = !data.for_ticked.length
  bar.setAttribute("aria-label", data.say)
  const said = make("span", count ? "count" : "muted", count ? `${count} ticked` : data.say)
  said.setAttribute("role", "status")
  bar.replaceChildren(said, ...data.for_ticked.map(one => {
    const node = make("button", "small", one.text)
    node.type = "button"
    node.hidden = !count
    node.disabled = count < one.at_least || count > one.at_most
    node.title = count < one.at_least ? `tick ${one.at_least} or more` : count > one.at_most ? `tick at most ${one.at_most}` : ""
    node.onclick = () => open(one.opens + [...table.ticked].join(","))
    return node
  }))
}

function headCell(column, open) {
  const th = as("columnheader", make("th", column.align || ""))
  th.scope = "col"
  if (column.help) th.title = column.help
  if (!column.sorts) { th.textContent = column.label; return th }
  const button = make("button", "sort", column.label)
  button.type = "button"
  button.onclick = () => open(column.sorts)
  if (column.sorted) {
    th.setAttribute("aria-sort", column.sorted)
    const arrow = make("span", "", column.sorted === "ascending" ? " ▲" : " ▼")
    arrow.setAttribute("aria-hidden", "true")
    button.append(arrow)
  }
  th.append(button)
  return th
}

function buildRow(row, columns, selected, open) {
  const tr = as("row", make("tr", row.id === selected ? "selected" : ""))
  tr.dataset.id = row.id
  if (row.id === selected) tr.setAttribute("aria-current", "true")
  for (const column of columns) {
    const td = as("cell", make("td", column.align || ""))
    td.dataset.label = column.label
    fillCell(td, row.cells[column.key], row, open)
    tr.append(td)
  }
  if (row.href) tr.onclick = () => open(row.id)
  else tr.classList.add("plain")
  return tr
}

function paint(table, data, open) {
  const active = table.getRootNode().activeElement, focused = active?.closest?.("tr")?.dataset.id
  const again = active?.getAttribute("role") === "switch" ? '[role="switch"]' : "a"
  const head = as("row", make("tr"))
  head.append(...data.columns.map(column => headCell(column, open)))
  table.querySelector("caption").textContent = data.caption
  table.querySelector("thead").replaceChildren(head)
  const rows = data.rows.map(row => buildRow(row, data.columns, data.selected, open))
  table.querySelector("tbody").replaceChildren(...rows)
  const shown = new Set(data.rows.map(row => row.id))
  table.ticked = new Set([...(table.ticked ?? [])].filter(id => shown.has(id)))
  if (data.for_ticked.length) {
    const boxes = data.rows.map(row => tick(`Tick ${row.name}`, table.ticked.has(row.id), isOn => {
      isOn ? table.ticked.add(row.id) : table.ticked.delete(row.id)
      paintBulk(table, data, open)
    }))
    rows.forEach((tr, i) => tr.prepend(tickCell("td", "cell", boxes[i])))
    head.prepend(tickCell("th", "columnheader", tick("Tick all rows", false, isOn => {
      for (const box of boxes) if (box.checked !== isOn) box.click()
    })))
  }
  paintBulk(table, data, open)
  // A table without a link is reached by no key, and may be wider than the screen.
  if (table.querySelector("a, button")) table.parentElement.removeAttribute("tabindex")
  else table.parentElement.tabIndex = 0
  if (focused) table.querySelector(`tr[data-id="${CSS.escape(focused)}"] ${again}`)?.focus()
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component
  const table = parentElement.querySelector("table")
  const wanted = JSON.stringify(data)
  table.classList.toggle("compact", data.is_compact)
  table.classList.toggle("folding", data.is_folding)
  table.classList.toggle("cards", data.is_cards)
  table.classList.toggle("lines", data.is_lines)
  if (table.dataset.drawn !== wanted) {
    table.dataset.drawn = wanted
    onceLifted(table, () => paint(table, data, id => setTriggerValue("opened", id)))
  }
  clearInterval(table.timer)
  table.timer = setInterval(() => {
    for (const node of table.querySelectorAll("[data-since]")) node.textContent = ageText(Number(node.dataset.since))
  }, 1000)
  return () => clearInterval(table.timer)
}
