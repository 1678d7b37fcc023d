import { createHash } from 'node:crypto'
import { type Graph, graphOf as evaluate } from '../simulator/graph/graph.ts'
import { buildOnce } from './build-cache.ts'

export function graphOf(stage: string, environment: Record<string, string> = {}): Promise<Graph> {
  const settings = Object.entries({ ...process.env, ...environment })
    .map(String)
    .filter((setting) => /^(?:PLAT|AWS|SST)_/.test(setting))
    .toSorted((a, b) => (a < b ? -1 : 1))
  const key = createHash('sha256')
    .update(JSON.stringify([stage, settings, process.version]))
    .digest('hex')
  return buildOnce(`graph-${key.slice(0, 16)}`, 'sst.config.ts', () => evaluate(stage, environment))
}
