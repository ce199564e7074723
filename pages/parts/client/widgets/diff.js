// A diff, side by side where there is room and unified where there is not. Sides come escaped from the server; unchanged
// lines are drawn when they are unfolded. n and p go from hunk to hunk. It scrolls nothing by itself: what it stands in, a page
// or a dialog, opens at its head.
const NARROW_PX = 760

const number = (i, look) => (i < 0 ? '<td class="no none"></td>' : `<td class="no ${look}">${i + 1}</td>`)
const margin = (heat, i, look) => (heat ? heatCell(heat[i + 1], "td", i < 0 ? "none" : look) : "")
const side = (i, html, look, heat) =>
  number(i, look) + margin(heat, i, look) + (i < 0 ? '<td class="none"></td>' : `<td class="${look}">${html}</td>`)

function splitRow([kind, i, j, left, right], heat) {
  const unchanged = kind === "="
  const old = side(i, left, unchanged ? "" : "del", heat?.[0])
  return `<tr>${old}${side(j, unchanged ? left : right, unchanged ? "" : "add", heat?.[1])}</tr>`
}

function line(i, j, html, look, heat) {
  const only = j < 0 ? margin(heat?.[0], i, look) : margin(heat?.[1], j, look)
  return `<tr>${number(i, look)}${number(j, look)}${only}<td class="${look} mark">${html}</td></tr>`
}

// In a unified diff all removed lines of a block stand before all added ones.
function unifiedRows(rows, heat) {
  let out = "", removed = "", added = ""
  for (const [kind, i, j, left, right] of rows) {
    if (kind === "=") {
      out += removed + added + line(i, j, left, "", heat)
      removed = added = ""
      continue
    }
    if (i >= 0) removed += line(i, -1, left, "del", heat)
    if (j >= 0) added += line(-1, j, right, "add", heat)
  }
  return out + removed + added
}

const isHunk = piece => piece.rows.some(row => row[0] !== "=")

function body(piece, at, state, heat) {
  const columns = state.unified ? (heat ? 4 : 3) : heat ? 6 : 4
  if (piece.fold && !state.open.has(at))
    return `<tbody class="fold"><tr><td colspan="${columns}"><button data-at="${at}">${piece.rows.length} unchanged lines</button></td></tr></tbody>`
  const rows = state.unified ? unifiedRows(piece.rows, heat) : piece.rows.map(row => splitRow(row, heat)).join("")
  return `<tbody${isHunk(piece) ? ' class="hunk"' : ""}>${rows}</tbody>`
}

function head(state, names, heat) {
  const num = '<col class="num">', hot = heat ? '<col class="hot">' : ""
  const columns = state.unified ? num + num + hot + "<col>" : (num + hot + "<col>").repeat(2)
  const cells = state.unified
    ? `<th colspan="${heat ? 4 : 3}" scope="col"></th>` : `<th colspan="${heat ? 3 : 2}" scope="col"></th>`.repeat(2)
  return [`<colgroup>${columns}</colgroup><thead><tr>${cells}</tr></thead>`, state.unified ? [names.join(" → ")] : names]
}

function paint(host) {
  const { state, data } = host
  const table = host.querySelector("table")
  const [html, names] = head(state, data.names, data.heat)
  table.className = `diff ${state.unified ? "unified" : "split"}${data.heat ? " heated" : ""}`
  table.innerHTML = html + data.pieces.map((piece, at) => body(piece, at, state, data.heat)).join("")
  table.querySelectorAll("th").forEach((th, i) => { th.textContent = names[i] })
  table.setAttribute("aria-label", `Difference between ${data.names[0]} and ${data.names[1]}`)
  tell(host)
}

function tell(host) {
  const hunks = [...host.querySelectorAll(".hunk")]
  hunks.forEach((hunk, i) => hunk.classList.toggle("here", i === host.state.at))
  host.querySelector(".place").textContent =
    hunks.length ? `hunk ${Math.min(host.state.at, hunks.length - 1) + 1} of ${hunks.length}` : ""
  const folds = host.data.pieces.filter(piece => piece.fold).length
  const all = host.querySelector(".all")
  all.hidden = !folds
  all.setAttribute("aria-pressed", String(host.state.open.size === folds))
  all.textContent = host.state.open.size === folds ? "fold unchanged" : "expand all"
}

function go(host, by) {
  const hunks = host.querySelectorAll(".hunk")
  if (!hunks.length) return
  host.state.at = Math.min(hunks.length - 1, Math.max(0, host.state.at + by))
  hunks[host.state.at].scrollIntoView({ block: "center" })
  tell(host)
}

// The cell of the margin that says most: of the new source, or of the old one where that alone has a profile.
function hottest(host) {
  const [line, side] = [1, 0].flatMap(side => {
    const most = Object.entries(host.data.heat?.[side] ?? {}).find(([, spot]) => spot[0] === 1)
    return most ? [[most[1][2], side]] : []
  })[0] ?? []
  const cells = [...host.querySelectorAll("td.heat[title]")].filter(cell => cell.title === line)
  return cells.at(side === 1 ? -1 : 0)
}

// After scrolling by hand the next key goes on from what is on the screen.
function follow(host) {
  const middle = window.innerHeight / 2
  const hunks = [...host.querySelectorAll(".hunk")]
  const near = hunks.findLastIndex(hunk => hunk.getBoundingClientRect().top <= middle)
  if (near < 0 || near === host.state.at) return
  host.state.at = near
  tell(host)
}

function asText(html) {
  const box = document.createElement("div")
  box.innerHTML = html
  return box.textContent
}

function patchText({ pieces, names }) {
  const out = [`--- ${names[0]}`, `+++ ${names[1]}`]
  for (const piece of pieces.filter(isHunk)) {
    let removed = [], added = []
    const flush = () => { out.push(...removed, ...added); removed = []; added = [] }
    out.push("@@")
    for (const [kind, i, j, left, right] of piece.rows) {
      if (kind === "=") { flush(); out.push(` ${asText(left)}`); continue }
      if (i >= 0) removed.push(`-${asText(left)}`)
      if (j >= 0) added.push(`+${asText(right)}`)
    }
    flush()
  }
  return out.join("\n") + "\n"
}

async function copy(host, button) {
  try {
    await navigator.clipboard.writeText(patchText(host.data))
    button.textContent = "copied"
  } catch {
    button.textContent = "not allowed here"
  }
  clearTimeout(button.timer)
  button.timer = setTimeout(() => { button.textContent = "copy" }, 2000)
}

function click(host, button) {
  if (button.classList.contains("previous")) return go(host, -1)
  if (button.classList.contains("next")) return go(host, 1)
  if (button.classList.contains("copy")) return copy(host, button)
  if (button.classList.contains("hottest")) return hottest(host)?.scrollIntoView({ block: "center" })
  if (button.classList.contains("all")) {
    const folds = host.data.pieces.flatMap((piece, at) => (piece.fold ? [at] : []))
    host.state.open = host.state.open.size === folds.length ? new Set() : new Set(folds)
    return paint(host)
  }
  host.state.open.add(Number(button.dataset.at))
  button.closest("tbody").outerHTML = body(host.data.pieces[button.dataset.at], Number(button.dataset.at), host.state, host.data.heat)
  tell(host)
}

function isTyping(event) {
  const target = event.composedPath()[0]
  return event.ctrlKey || event.metaKey || event.altKey || target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)
}

export default function ({ data, parentElement }) {
  const host = parentElement.querySelector(".host")
  const wanted = JSON.stringify([data.names, data.summary, data.left_out, data.pieces.length, data.is_compact, data.heat])
  host.data = data
  host.classList.toggle("compact", data.is_compact)
  host.querySelector(".summary").textContent = data.summary
  host.querySelector(".left_out").textContent = data.left_out
  host.querySelector(".hottest").hidden = !data.heat
  const isNarrow = () => data.is_compact || host.clientWidth < NARROW_PX
  if (host.wanted !== wanted || host.pieces !== JSON.stringify(data.pieces)) {
    host.wanted = wanted
    host.pieces = JSON.stringify(data.pieces)
    host.state = { unified: isNarrow(), open: new Set(), at: 0 }
    paint(host)
  }
  host.onclick = event => {
    const button = event.target.closest("button")
    if (button) click(host, button)
  }
  host.onkey = event => {
    if (isTyping(event) || !host.isConnected || !["n", "p"].includes(event.key)) return
    event.preventDefault()
    go(host, event.key === "n" ? 1 : -1)
  }
  host.onscrolled = () => follow(host)
  const key = event => host.onkey(event), scrolled = () => host.onscrolled()
  host.leave?.()
  // In a dialog the keys are the dialog's: none of them reaches the document.
  const keyed = (host.getRootNode().host ?? host).closest('[role="dialog"]') ?? document
  if (!data.is_compact) keyed.addEventListener("keydown", key)
  document.addEventListener("wheel", scrolled, { passive: true })
  const sized = new ResizeObserver(() => {
    if (host.clientWidth && isNarrow() !== host.state.unified) {
      host.state.unified = isNarrow()
      paint(host)
    }
  })
  sized.observe(host)
  host.leave = () => {
    keyed.removeEventListener("keydown", key)
    document.removeEventListener("wheel", scrolled)
    sized.disconnect()
  }
  return () => host.leave()
}
