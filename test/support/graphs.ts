import { createHash } from 'node:crypto'
import { type Graph, graphOf as evaluated } from '../simulator/graph/graph.ts'
import { buildOnce } from './build-cache.ts'

/** What the configuration reads of the process that evaluates it, whatever a test sets for it. */
const isSetting = ([name]: [string, ...unknown[]]) => /^(?:PLAT|AWS|SST)_/.test(name)

const byCode = (one: string, other: string): number => (one < other ? -1 : 1)

/** The deployment as `graphOf` evaluates it, once for all runs until a file changes that has a part in it. */
export function graphOf(stage: string, environment: Record<string, string> = {}): Promise<Graph> {
  const settings = Object.entries({ ...process.env, ...environment })
    .filter(isSetting)
    .map(String)
    .toSorted(byCode)
  const told = createHash('sha256')
    .update(JSON.stringify([stage, settings, process.version]))
    .digest('hex')
  return buildOnce(`graph-${told.slice(0, 16)}`, 'sst.config.ts', () => evaluated(stage, environment))
}
