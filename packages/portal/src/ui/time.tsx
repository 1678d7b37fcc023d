import { useEffect, useState, useSyncExternalStore } from 'react'

/** Times are shown in the zone that the browser is in, and said to be in it. */
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const withZone = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' })
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' })

const steps = [
  [60, 'second', 1],
  [3600, 'minute', 60],
  [86_400, 'hour', 3600],
  [30 * 86_400, 'day', 86_400],
] as const

/** How long ago or ahead, in the one unit that fits; further away than a month, the date. */
function relativeText(atMs: number, nowMs: number): string {
  const seconds = Math.round((atMs - nowMs) / 1000)
  const fitting = steps.find(([below]) => Math.abs(seconds) < below)
  if (fitting === undefined) return absolute.format(atMs)
  const [, unit, size] = fitting
  return relative.format(Math.round(seconds / size), unit)
}

const tickMs = 10_000
const listeners = new Set<() => void>()
let tick = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  if (timer === undefined) {
    // Nobody has looked at the clock for a while.
    tick = Date.now()
    timer = setInterval(() => {
      tick = Date.now()
      for (const each of listeners) each()
    }, tickMs)
  }
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** The time, as often as texts such as "2 min. ago" change. All of them share one timer. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => tick)

/** The time by the second, for as long as something is under way that is measured by it. */
export function useSeconds(isRunning: boolean): number {
  const [nowMs, setNowMs] = useState(Date.now)
  useEffect(() => {
    if (!isRunning) return undefined
    const clock = setInterval(() => setNowMs(Date.now()), 1000)
    return () => clearInterval(clock)
  }, [isRunning])
  return nowMs
}

/** A time: how long ago it was, or the date; the whole of it with its zone as a tooltip. */
export function Time({ at, isAbsolute = false }: { at: string; isAbsolute?: boolean }) {
  const nowMs = useNow()
  const atMs = Date.parse(at)
  // What has happened since the last tick is not ahead.
  const sinceMs = atMs > nowMs && atMs < nowMs + tickMs ? atMs : nowMs
  return (
    <time dateTime={at} title={withZone.format(atMs)}>
      {isAbsolute ? absolute.format(atMs) : relativeText(atMs, sinceMs)}
    </time>
  )
}

/** A span of time as `1 h 2 min` or `3.4 s`. */
export function durationText(ms: number): string {
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
