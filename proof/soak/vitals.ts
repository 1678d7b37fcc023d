import { readdir } from 'node:fs/promises'
import { readRuntimeFile } from '../../packages/local/src/runtime-file.ts'
import type { PlatformProcess } from '../../test/support/platform.ts'

const MB = 1024 * 1024

/** How a platform's process is at one moment. */
export interface Vitals {
  /** Since the process that measures began. */
  atMinutes: number
  residentMB: number
  heapMB: number
  /** Open files and sockets. */
  descriptors: number
  heldRequests: number
  /** How late the event loop is, at worst of a hundred. */
  loopLagMs: number
}

/** Reads what a process tells of itself, and what the system tells of it. */
export async function vitalsOf({ url, dataDir }: PlatformProcess): Promise<Vitals> {
  const { processId } = await readRuntimeFile(dataDir)
  const [text, open] = [await (await fetch(`${url}/metrics`)).text(), await readdir(`/proc/${processId}/fd`)]
  const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
  return {
    atMinutes: performance.now() / 60_000,
    residentMB: value('process_resident_memory_bytes') / MB,
    heapMB: value('nodejs_heap_size_used_bytes') / MB,
    descriptors: open.length,
    heldRequests: value('platform_http_held_requests'),
    loopLagMs: 1000 * value('nodejs_eventloop_lag_p99_seconds'),
  }
}

/** Growth a minute, by least squares. */
export function slopeOf(points: readonly (readonly [minutes: number, value: number])[]): number {
  const [meanX, meanY] = [0, 1].map(
    (axis) => points.reduce((sum, point) => sum + (point[axis] ?? 0), 0) / points.length,
  )
  const deviations = points.map(([x, y]) => [x - (meanX ?? 0), y - (meanY ?? 0)] as const)
  const spread = deviations.reduce((sum, [x]) => sum + x * x, 0)
  return spread === 0 ? 0 : deviations.reduce((sum, [x, y]) => sum + x * y, 0) / spread
}

/** The lowest value of each half minute: what is left when the garbage has been collected. */
export function floors(points: readonly (readonly [minutes: number, value: number])[]): [number, number][] {
  const lowest = new Map<number, [number, number]>()
  for (const [minutes, value] of points) {
    const half = Math.floor(minutes * 2)
    if (value < (lowest.get(half)?.[1] ?? Infinity)) lowest.set(half, [minutes, value])
  }
  return [...lowest.values()]
}
