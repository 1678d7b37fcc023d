/** One promise of a part, and what was seen of it. */
export interface Figure {
  /** What holds, as a sentence without its full stop. */
  claim: string
  /** What has to be seen for it, such as `0` or `≤ 1 MB a minute`. */
  goal: string
  /** What was seen, with its unit. */
  seen: string
  isMet: boolean
}

/** How thorough a run is, and where it tells of its progress. */
export interface Effort {
  /** A few seconds of the same, as `npm test` has it. */
  isShort: boolean
  /** The run's random choices start with it. */
  seed: number
  /** Prints a line of progress. */
  say: (line: string) => void
}

/** Something that is proven by itself, in a process of its own. */
export interface Part {
  /** What it shows, for people. */
  title: string
  /** How it is shown, in a sentence or two. */
  how: string
  run: (effort: Effort) => Promise<Figure[]>
}

/** A figure that counts what must not be. */
export const none = (claim: string, count: number, of?: string): Figure => ({
  claim,
  goal: '0',
  seen: of === undefined ? String(count) : `${count} of ${of}`,
  isMet: count === 0,
})

/** A figure that counts what must be, such as rounds that all have one winner. */
export const all = (claim: string, count: number, total: number): Figure => ({
  claim,
  goal: String(total),
  seen: String(count),
  isMet: count === total,
})

/** A figure that has a limit. */
export const atMost = (claim: string, measured: number, limit: number, unit = ''): Figure => ({
  claim,
  goal: `≤ ${limit}${unit}`,
  seen: `${Number(measured.toPrecision(3))}${unit}`,
  isMet: measured <= limit,
})

/** A figure that must be reached. */
export const atLeast = (claim: string, measured: number, limit: number, unit = ''): Figure => ({
  claim,
  goal: `≥ ${limit}${unit}`,
  seen: `${Number(measured.toPrecision(5))}${unit}`,
  isMet: measured >= limit,
})
