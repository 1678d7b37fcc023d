import { createHash } from 'node:crypto'
import { type Graph, graphOf as evaluated } from '../simulator/graph/graph.ts'
import { buildOnce } from './build-cache.ts'

/** Environment variables that the configuration reads. */
const isSetting = ([name]: [string, ...unknown[]]) => /^(?:PLAT|AWS|SST)_/.test(name)

const byCode = (one: string, other: string): number => (one < other ? -1 : 1)

/** The evaluated deployment, cached until one of its files changes. */
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
