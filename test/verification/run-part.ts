import { parts } from './parts.ts'

// Runs one part of `parts.ts` in this process: main.ts starts it. Fails if a figure misses its goal.
const [name = '', effort, seed] = process.argv.slice(2)
const load = parts[name]
if (load === undefined) throw new Error(`Unknown part: ${name}.`)
const { part } = await load()
const say = (line: string): void => console.log(line)
const figures = await part.run({ isShort: effort === 'short', seed: Number(seed), say })
for (const { claim, goal, seen, isMet } of figures)
  say(`${isMet ? 'ok    ' : 'MISSED'} ${claim}: ${seen} (goal ${goal})`)
process.exitCode = figures.length > 0 && figures.every(({ isMet }) => isMet) ? 0 : 1
