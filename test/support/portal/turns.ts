/** Looks that take turns, so that all of them come up where not all are tried (see long.ts): in each file from the first on. */

let turns: Record<string, number> = {}

/** Begins with the first of each kind again. */
export const beginTurns = () => void (turns = {})

/** The next one of a kind, alone; none where there are none. */
export function turnOf<Look>(kind: string, looks: readonly Look[]): Look[] {
  const turn = turns[kind] ?? 0
  turns[kind] = turn + 1
  return looks.filter((_look, index) => index === turn % looks.length)
}
