// Side-by-side diff: rows come escaped from the server; unchanged runs open on a click.
export default function ({ data, parentElement }) {
  const table = parentElement.querySelector("table")
  parentElement.querySelector(".summary").textContent = data.summary
  if (table.shown === data.rows) return
  table.shown = data.rows
  table.innerHTML =
    '<colgroup><col class="num"><col><col class="num"><col></colgroup>' +
    '<thead><tr><th colspan="2" scope="col"></th><th colspan="2" scope="col"></th></tr></thead><tbody></tbody>'
  table.querySelectorAll("th").forEach((th, i) => { th.textContent = data.names[i] })
  table.querySelector("tbody").innerHTML = data.rows
  table.onclick = event => {
    if (!event.target.closest("button")) return
    const fold = event.target.closest("tr")
    for (let row = fold.nextElementSibling; row?.classList.contains("folded"); row = row.nextElementSibling) row.hidden = false
    fold.remove()
  }
}
