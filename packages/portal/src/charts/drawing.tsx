import { classes } from '../ui/class-names.ts'
import { countTicks, tickText, timeTicks } from './axis.ts'
import styles from './chart.module.css'
import { type ChartData, type ChartPoint, maxValue, stackedTops } from './series.tsx'

interface DrawingProps extends Omit<ChartData, 'label'> {
  width: number
  height: number
  markedIndex: number | undefined
}

const margins = { left: 36, right: 8, top: 8, bottom: 22 }
const tickPixels = 76

/** Returns the left edge of the first point and the width of each point, in pixels. */
export const stepsOf = (width: number, count: number): { left: number; step: number } => ({
  left: margins.left,
  step: Math.max(1, width - margins.left - margins.right) / Math.max(1, count),
})

/** The drawing without interaction. It is hidden from screen readers, which use the slider or the table. */
export function Drawing({ shape, series, points, stepMinutes, width, height, markedIndex }: DrawingProps) {
  const stepMs = stepMinutes * 60_000
  const { left, step } = stepsOf(width, points.length)
  const ticks = countTicks(maxValue(points))
  const maxTick = ticks.at(-1) ?? 1
  const bottom = height - margins.bottom
  const yOf = (value: number) => bottom - (value / maxTick) * (bottom - margins.top)
  const startMs = points[0]?.atMs ?? 0
  const xOf = (atMs: number) => left + ((atMs - startMs) / stepMs) * step
  const endMs = startMs + points.length * stepMs
  const fits = (atMs: number) => xOf(atMs) <= width - tickPixels / 3
  const times = timeTicks(startMs, endMs, (width - left) / tickPixels).filter(fits)
  return (
    <svg width={width} height={height} aria-hidden className={styles['drawing']}>
      {ticks.map((value) => (
        <g key={value}>
          <line className={styles['grid']} x1={left} x2={width - margins.right} y1={yOf(value)} y2={yOf(value)} />
          <text className={styles['count']} x={left - 6} y={yOf(value)} dy="0.32em">
            {value}
          </text>
        </g>
      ))}
      {times.map((atMs) => (
        <text key={atMs} className={styles['time']} x={xOf(atMs)} y={height - 5}>
          {tickText(atMs)}
        </text>
      ))}
      {series.map(({ name, variant }, index) => (
        <path
          key={name}
          className={classes(styles['shape'], styles[variant])}
          d={(shape === 'areas' ? areasPath : barsPath)(points, index, { left, step, yOf })}
        />
      ))}
      {markedIndex !== undefined && (
        <rect
          className={styles['marked']}
          x={left + markedIndex * step}
          width={step}
          y={margins.top}
          height={bottom - margins.top}
        />
      )}
    </svg>
  )
}

interface Scale {
  left: number
  step: number
  yOf: (value: number) => number
}

// Returns the bottom and top edge of a series at a point, in pixels.
function edges(values: readonly number[], index: number, yOf: Scale['yOf']): [bottom: string, top: string] {
  const tops = stackedTops(values)
  return [yOf(tops[index - 1] ?? 0).toFixed(1), yOf(tops[index] ?? 0).toFixed(1)]
}

function barsPath(points: readonly ChartPoint[], index: number, { left, step, yOf }: Scale): string {
  const gap = step > 4 ? 1 : 0
  return points
    .map(({ values }, pointIndex) => {
      if (!values?.[index]) return ''
      const [bottom, top] = edges(values, index, yOf)
      return `M${(left + pointIndex * step).toFixed(1)} ${bottom}V${top}h${(step - gap).toFixed(1)}V${bottom}z`
    })
    .join('')
}

// Areas have steps instead of slopes, because a status changes at one moment. Unknown values leave a gap.
function areasPath(points: readonly ChartPoint[], index: number, { left, step, yOf }: Scale): string {
  let path = ''
  for (let from = 0; from < points.length; from++) {
    let to = from
    let topPath = ''
    let bottomPath = ''
    for (let values = points[to]?.values; values !== undefined; values = points[++to]?.values) {
      const [bottom, top] = edges(values, index, yOf)
      const [x1, x2] = [(left + to * step).toFixed(1), (left + (to + 1) * step).toFixed(1)]
      topPath += `${to === from ? 'M' : 'L'}${x1} ${top}H${x2}`
      bottomPath = `L${x2} ${bottom}H${x1}${bottomPath}`
    }
    if (to > from) path += `${topPath}${bottomPath}z`
    from = to
  }
  return path
}
