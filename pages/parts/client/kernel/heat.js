// Where an output is wrong: one cell per block of the output, darker the more of it is wrong.
export default function ({ data, parentElement }) {
  const box = parentElement.querySelector(".heat")
  const { heat, shape } = data
  const columns = shape.at(-1) ?? 1
  const rows = shape.slice(0, -1).reduce((a, b) => a * b, 1)
  box.classList.toggle("flat", heat.length === 1)
  box.style.gridTemplateColumns = `repeat(${heat[0].length}, 1fr)`
  box.setAttribute("aria-label", `Map of wrong elements: ${data.words}`)
  const from = (i, count, size) => Math.floor((i * size) / count)
  box.replaceChildren(...heat.flatMap((row, i) => row.map((share, j) => {
    const cell = document.createElement("div")
    cell.style.setProperty("--share", `${Math.round(share ? 18 + 82 * share : 0)}%`)
    const lines = `rows ${from(i, heat.length, rows)} to ${from(i + 1, heat.length, rows) - 1}`
    const places = `columns ${from(j, row.length, columns)} to ${from(j + 1, row.length, columns) - 1}`
    cell.title = `${lines}, ${places}: ${share ? (100 * share).toPrecision(3) : 0} % wrong`
    return cell
  })))
  parentElement.querySelector(".rows").textContent = `${rows.toLocaleString("en")} rows`
  parentElement.querySelector(".columns").textContent = `${columns.toLocaleString("en")} columns`
  parentElement.querySelector("figcaption").textContent = data.words
}
