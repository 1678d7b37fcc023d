import { type KeyboardEvent, type PointerEvent, type RefObject, useLayoutEffect, useRef, useState } from 'react'
import { spanText } from './axis.ts'
import styles from './chart.module.css'
import { Drawing, stepsOf } from './drawing.tsx'
import { type ChartData, Swatch } from './series.tsx'

const pageSteps = 10

/** The drawing with the values at the position of the pointer or the keyboard. */
export function Plot({ label, shape, series, points, stepMinutes }: ChartData) {
  const frame = useRef<HTMLDivElement>(null)
  const { width, height } = useSize(frame)
  const [markedIndex, setMarkedIndex] = useState<number>()
  const lastIndex = points.length - 1
  const shownIndex = Math.min(markedIndex ?? lastIndex, lastIndex)
  const { left, step } = stepsOf(width, points.length)

  const onPointerMove = ({ clientX, currentTarget }: PointerEvent) => {
    const x = clientX - currentTarget.getBoundingClientRect().left - left
    setMarkedIndex(Math.min(lastIndex, Math.max(0, Math.floor(x / step))))
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const nextIndex = nextPoint(event.key, shownIndex, lastIndex)
    if (event.key === 'Escape') setMarkedIndex(undefined)
    if (nextIndex === undefined) return
    event.preventDefault()
    setMarkedIndex(nextIndex)
  }
  return (
    <div
      ref={frame}
      className={styles['plot']}
      role="slider"
      tabIndex={0}
      aria-label={`${label}: point in time`}
      aria-valuemin={0}
      aria-valuemax={lastIndex}
      aria-valuenow={shownIndex}
      aria-valuetext={textOf(points[shownIndex], series, stepMinutes)}
      onKeyDown={onKeyDown}
      onPointerMove={onPointerMove}
      onPointerLeave={() => setMarkedIndex(undefined)}
      onFocus={() => setMarkedIndex(shownIndex)}
      onBlur={() => setMarkedIndex(undefined)}
    >
      {width > 0 && (
        <Drawing
          {...{ shape, series, points, stepMinutes, width, height }}
          markedIndex={markedIndex === undefined ? undefined : shownIndex}
        />
      )}
      {markedIndex !== undefined && (
        <Tooltip
          x={left + (shownIndex + 0.5) * step}
          isLeft={shownIndex > lastIndex / 2}
          {...{ point: points[shownIndex], series, stepMinutes }}
        />
      )}
    </div>
  )
}

function nextPoint(key: string, index: number, lastIndex: number): number | undefined {
  const steps: Record<string, number> = {
    ArrowLeft: index - 1,
    ArrowDown: index - 1,
    ArrowRight: index + 1,
    ArrowUp: index + 1,
    PageDown: index - pageSteps,
    PageUp: index + pageSteps,
    Home: 0,
    End: lastIndex,
  }
  const nextIndex = steps[key]
  return nextIndex === undefined ? undefined : Math.min(lastIndex, Math.max(0, nextIndex))
}

type PointProps = Pick<ChartData, 'series' | 'stepMinutes'> & { point: ChartData['points'][number] | undefined }

function textOf(point: PointProps['point'], series: PointProps['series'], stepMinutes: number): string {
  if (point === undefined) return 'Nothing'
  const { atMs, values } = point
  const countsText = values ? series.map(({ name }, index) => `${values[index] ?? 0} ${name}`).join(', ') : 'unknown'
  return `${spanText(atMs, stepMinutes)}: ${countsText}`
}

// The tooltip is placed on the side that has more space.
const Tooltip = ({ x, isLeft, point, series, stepMinutes }: PointProps & { x: number; isLeft: boolean }) =>
  point && (
    <div className={styles['tooltip']} aria-hidden style={{ left: x, translate: isLeft ? 'calc(-100% - 8px)' : '8px' }}>
      <strong>{spanText(point.atMs, stepMinutes)}</strong>
      {point.values === undefined && <span>Not known</span>}
      {point.values?.map((value, index) => (
        <span key={series[index]?.name}>
          <Swatch variant={series[index]?.variant ?? 'quiet'} /> {series[index]?.name} <b>{value}</b>
        </span>
      ))}
    </div>
  )

// Returns the size of an element in whole pixels, or 0 until it is measured.
function useSize(element: RefObject<HTMLElement | null>): { width: number; height: number } {
  const [size, setSize] = useState({ width: 0, height: 0 })
  useLayoutEffect(() => {
    const { current } = element
    if (current === null) return undefined
    const measure = () => setSize({ width: current.clientWidth, height: current.clientHeight })
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(current)
    return () => observer.disconnect()
  }, [element])
  return size
}
