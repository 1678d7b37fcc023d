import { useEffect, useState, useSyncExternalStore } from 'react'
import { language } from '../lib/language.ts'

// Times are in the browser's time zone.
const absoluteFormat = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' })
const fullFormat = new Intl.DateTimeFormat(language, { dateStyle: 'full', timeStyle: 'long' })
const clockFormat = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })
const relativeFormat = new Intl.RelativeTimeFormat(language, { numeric: 'auto', style: 'short' })

const steps = [
  [60, 'second', 1],
  [3600, 'minute', 60],
  [86_400, 'hour', 3600],
  [30 * 86_400, 'day', 86_400],
] as const

// Times at least 30 days away are shown as a date.
function relativeText(atMs: number, nowMs: number): string {
  const seconds = Math.round((atMs - nowMs) / 1000)
  const step = steps.find(([limitSeconds]) => Math.abs(seconds) < limitSeconds)
  if (step === undefined) return absoluteFormat.format(atMs)
  const [, unit, size] = step
  return relativeFormat.format(Math.round(seconds / size), unit)
}

const tickMs = 10_000
const listeners = new Set<() => void>()
let lastTickMs = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  if (timer === undefined) {
    // The timer does not run while no component uses it, so `lastTickMs` may be old.
    lastTickMs = Date.now()
    timer = setInterval(() => {
      lastTickMs = Date.now()
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

/** Returns the current time in milliseconds, updated every ten seconds by a timer that all components share. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => lastTickMs)

/** Returns the current time in milliseconds, updated every second while `isRunning`. */
export function useRunningClock(isRunning: boolean): number {
  const [nowMs, setNowMs] = useState(Date.now)
  useEffect(() => {
    if (!isRunning) return undefined
    const interval = setInterval(() => setNowMs(Date.now()), 1000)
    return () => clearInterval(interval)
  }, [isRunning])
  return nowMs
}

/** A relative time or a date. The tooltip shows the full time with its time zone. */
export function Time({ at, isAbsolute = false }: { at: string; isAbsolute?: boolean }) {
  const nowMs = useNow()
  const atMs = Date.parse(at)
  // An event since the last tick must not appear to be in the future.
  const referenceMs = atMs > nowMs && atMs < nowMs + tickMs ? atMs : nowMs
  return (
    <time dateTime={at} title={fullFormat.format(atMs)}>
      {isAbsolute ? absoluteFormat.format(atMs) : relativeText(atMs, referenceMs)}
    </time>
  )
}

/** Returns the time of day with seconds, always with eight characters. */
export const clockText = (at: string): string => clockFormat.format(Date.parse(at))

/** Returns the duration of a job or step, or '' unless it has both started and ended. */
export const totalDurationText = ({ startedAt, completedAt }: { startedAt?: string; completedAt?: string }): string =>
  startedAt === undefined || completedAt === undefined
    ? ''
    : durationText(Math.max(0, Date.parse(completedAt) - Date.parse(startedAt)))

/** Formats a duration in milliseconds, such as `1 h 2 min` or `3.4 s`. */
export function durationText(ms: number): string {
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
