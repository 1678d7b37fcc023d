import { language } from '../lib/language.ts'

/** Returns at most five round tick values, from 0 to at least `highestCount`. */
export function countTicks(highestCount: number): number[] {
  const minStep = Math.max(1, highestCount / 4)
  const size = 10 ** Math.floor(Math.log10(minStep))
  const step = [1, 2, 5, 10].map((factor) => factor * size).find((each) => each >= minStep) ?? minStep
  const count = Math.max(1, Math.ceil(highestCount / step))
  return Array.from({ length: count + 1 }, (_, index) => index * step)
}

const hourMs = 3_600_000
const hourSteps = [1, 2, 3, 6, 12, 24, 48, 96, 168]

/**
 * Returns ticks at full hours or days of the browser's time zone, in milliseconds. The step is the smallest that makes
 * at most `maxIntervals` intervals, or else two weeks.
 */
export function timeTicks(fromMs: number, toMs: number, maxIntervals: number): number[] {
  const hours = (toMs - fromMs) / hourMs
  const step = hourSteps.find((each) => hours / each <= maxIntervals) ?? 336
  const tick = new Date(fromMs)
  tick.setHours(0, 0, 0, 0)
  const ticks: number[] = []
  // Calendar steps keep ticks at midnight on days with 23 or 25 hours.
  for (let atMs = tick.getTime(); atMs <= toMs; atMs = tick.getTime()) {
    if (atMs >= fromMs) ticks.push(atMs)
    if (step < 24) tick.setHours(tick.getHours() + step)
    else tick.setDate(tick.getDate() + step / 24)
    if (tick.getTime() <= atMs) break
  }
  return ticks
}

const hourFormat = new Intl.DateTimeFormat(language, { hour: 'numeric', minute: '2-digit' })
const dayFormat = new Intl.DateTimeFormat(language, { day: 'numeric', month: 'short' })
const fullFormat = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' })

/** Returns the date if the tick is at midnight, else the time. */
export const tickText = (atMs: number): string =>
  (new Date(atMs).getHours() === 0 ? dayFormat : hourFormat).format(atMs)

export const spanText = (atMs: number, stepMinutes: number): string =>
  fullFormat.formatRange(atMs, atMs + stepMinutes * 60_000)
