/** One thing that has to hold, and whether it does. */
export interface Goal {
  name: string
  measured: number
  limit: number
  isMet: boolean
}

export const atMost = (name: string, measured: number, limit: number): Goal => ({
  name,
  measured,
  limit,
  isMet: measured <= limit,
})

/** A goal that is reported and fails nothing: it depends on how busy the machine is, not on the code alone. */
export interface Hope extends Goal {
  isHope: true
}

export const hope = (goal: Goal): Hope => ({ ...goal, isHope: true })

type Cell = string | number

/** One table of the report, and the goals that it settles. */
export interface Section {
  title: string
  columns: string[]
  rows: Cell[][]
  goals: (Goal | Hope)[]
}

/** How thorough a run is. */
export interface Effort {
  isQuick: boolean
}
