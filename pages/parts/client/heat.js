// Where an output is wrong: one cell per block of the output, darker the more of it is wrong.
export default function ({ data, parentElement }) {
  const box = parentElement.querySelector(".heat")
  box.style.gridTemplateColumns = `repeat(${data.heat[0].length}, 1fr)`
  const wrong = data.heat.flat().filter(share => share > 0).length
  box.setAttribute("aria-label", `Map of wrong elements: ${wrong} of ${data.heat.flat().length} blocks have errors`)
  box.replaceChildren(...data.heat.flatMap((row, i) => row.map((share, j) => {
    const cell = document.createElement("div")
    cell.style.setProperty("--share", `${Math.round(share ? 18 + 82 * share : 0)}%`)
    cell.title = `block row ${i}, column ${j}: ${(100 * share).toPrecision(3)} % wrong`
    return cell
  })))
  parentElement.querySelector("figcaption").textContent =
    `Where it is wrong: ${wrong} of ${data.heat.flat().length} blocks of the ${data.shape.join(" × ")} output have errors`
}
