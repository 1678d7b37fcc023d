// A duration is shown in the largest unit of which it has at least two, as in `kubectl get`: 119s, 2m.
const units: [name: string, seconds: number][] = [
  ['y', 365 * 86_400],
  ['d', 86_400],
  ['h', 3600],
  ['m', 60],
]

function durationOf(ms: number, round: (value: number) => number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const [name, unitSeconds] = units.find(([, unit]) => seconds >= 2 * unit) ?? ['s', 1]
  return `${round(seconds / unitSeconds)}${name}`
}

/** Returns the age of a time, such as `3d`. A time in the future, from a clock that is ahead, has the age `0s`. */
export const ageOf = (time: string, nowMs: number): string => durationOf(nowMs - Date.parse(time), Math.floor)

/** Returns the rounded time left until a time, such as `in 3d`, or `expired`. */
export function expiryOf(time: string, nowMs: number): string {
  const leftMs = Date.parse(time) - nowMs
  return leftMs > 0 ? `in ${durationOf(leftMs, Math.round)}` : 'expired'
}
