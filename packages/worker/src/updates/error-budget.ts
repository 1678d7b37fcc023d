import { type TrafficPercent } from './target/port.ts'

/** What two versions that serve side by side have failed at. */
export interface ErrorCounts {
  share: TrafficPercent
  /** Of the new version, since it has its share. */
  faults: number
  /** Of the old version, in the same time. */
  faultsBeside: number
  /** What the old version used to have in as long a time, when it served everybody. */
  usualFaults: number
}

/** So few failures tell nothing. */
const least = 3
/** Chance alone makes some difference. */
const times = 2

/**
 * Whether a new version fails more than the old one does: at least three times, and more than twice as often as its share
 * would, were it like the old one, now or before. Where nothing of the old one is left there is only what it was before.
 */
export function exceedsErrorBudget({ share, faults, faultsBeside, usualFaults }: ErrorCounts): boolean {
  const part = share / 100
  const likeBeside = part < 1 ? (faultsBeside * part) / (1 - part) : 0
  return faults >= least && faults > times * Math.max(likeBeside, usualFaults * part)
}
