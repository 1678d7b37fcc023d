import { parts } from './parts.ts'

// One part in this process, which `child.ts` has started; its figures go there.
const [name = '', effort, seed] = process.argv.slice(2)
const load = parts[name]
if (load === undefined) throw new Error(`There is no part ${name}.`)
const { part } = await load()
const say = (line: string): void => console.log(line)
const figures = await part.run({ isShort: effort === 'short', seed: Number(seed), say })
process.send?.({ title: part.title, how: part.how, figures })
process.disconnect()
