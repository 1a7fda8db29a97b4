// Draws requests/s relative to a static response, as bars on a logarithmic axis. Readable on light and dark pages.
import { computeRatio, formatShort } from './numbers.mjs'
import { OPERATIONS } from './requests.mjs'

const WIDTH = 900
const LEFT = 250
const RIGHT = 70
const BAR = 13
const STEP = 17
const GROUP = 34
const TOP = 52
const LOWEST = 1e-4
const HIGHEST = 1

const STYLE = `
    text { font: 12px system-ui, sans-serif; fill: #24292f }
    .title { font-size: 15px; font-weight: 600 }
    .group { font-weight: 600 }
    .small { font-size: 11px; fill: #57606a }
    .line { stroke: #d0d7de; stroke-width: 1 }
    .bar { fill: #8c959f }
    .verso { fill: #0969da }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .small { fill: #9198a1 }
      .line { stroke: #3d444d }
      .bar { fill: #6e7681 }
      .verso { fill: #4493f8 }
    }`

/** Returns an SVG. Operations that were not measured on the static server are left out. */
export function drawChart(results, titles, about) {
  const groups = Object.entries(results)
    .filter(([, servers]) => servers.static)
    .map(([operation, servers]) => ({ title: OPERATIONS[operation], bars: listBars(servers) }))
  const parts = []
  let y = TOP
  for (const { title, bars } of groups) {
    y += GROUP
    parts.push(`<text class="group" x="16" y="${y - 8}">${escapeXml(title)}</text>`)
    for (const { name, ratio } of bars) {
      parts.push(drawBar(y, name, titles[name], ratio))
      y += STEP
    }
  }
  const height = y + 44
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Requests a second relative to a static answer">
  <style>${STYLE}
  </style>
  <text class="title" x="16" y="24">Requests/s relative to node:http with a static body (logarithmic)</text>
  <text class="small" x="16" y="42">${escapeXml(about)}</text>
  ${drawAxis(y)}
  ${parts.join('\n  ')}
</svg>
`
}

function listBars(servers) {
  return Object.keys(servers)
    .filter((name) => name !== 'static')
    .map((name) => ({ name, ratio: computeRatio(servers[name], servers.static) }))
    .filter(({ ratio }) => ratio > 0)
    .sort((a, b) => b.ratio - a.ratio)
}

function drawBar(y, name, title, ratio) {
  const end = Math.max(scaleX(ratio), LEFT + 2)
  const kind = name.startsWith('verso') ? 'bar verso' : 'bar'
  return (
    `<text x="${LEFT - 8}" y="${y + 10}" text-anchor="end">${escapeXml(title)}</text>` +
    `<rect class="${kind}" x="${LEFT}" y="${y}" width="${(end - LEFT).toFixed(1)}" height="${BAR}"/>` +
    `<text class="small" x="${(end + 5).toFixed(1)}" y="${y + 10}">${formatShort(ratio)}</text>`
  )
}

function drawAxis(bottom) {
  const lines = []
  for (let value = LOWEST; value < HIGHEST * 1.5; value *= 10) {
    const x = scaleX(value).toFixed(1)
    lines.push(
      `<line class="line" x1="${x}" y1="${TOP}" x2="${x}" y2="${bottom + 6}"/>` +
        `<text class="small" x="${x}" y="${bottom + 22}" text-anchor="middle">${Number(value.toPrecision(1))}</text>`,
    )
  }
  return lines.join('\n  ')
}

function scaleX(ratio) {
  const share = Math.log(Math.max(ratio, LOWEST) / LOWEST) / Math.log(HIGHEST / LOWEST)
  return LEFT + share * (WIDTH - LEFT - RIGHT)
}

function escapeXml(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}
