import type { RequestMetrics } from '../gateway/exchange.ts'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { version } from '@platform/core/lib/version'
import { createFunctionMetrics, type FunctionMetrics } from './function-metrics.ts'

export interface Metrics extends FunctionMetrics {
  registry: Registry
  begin: () => RequestMetrics
  /** Registers a function to run before each scrape. */
  onScrape: (collect: () => Promise<void>) => void
  /** Returns all metrics in the text format of Prometheus. */
  read: () => Promise<{ contentType: string; text: string }>
}

const bucketsSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

let sharedRegistry: Registry | undefined

/** Node's default metrics describe the process, so all platforms in it share one registry. */
function processRegistry(): Registry {
  if (sharedRegistry === undefined) {
    sharedRegistry = new Registry()
    collectDefaultMetrics({ register: sharedRegistry })
  }
  return sharedRegistry
}

export function createMetrics(threadCount: number): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const collectors: (() => Promise<void>)[] = []
  gauge(registry, 'platform_runner_info', 'The version of the runner, as a label.', ['version']).set({ version }, 1)
  gauge(registry, 'platform_function_threads', 'Threads that run functions.').set(threadCount)
  const requests = new Counter({
    name: 'platform_http_requests_total',
    help: 'Responses of the gateway.',
    labelNames: ['function', 'route', 'status'],
    registers,
  })
  const durations = new Histogram({
    name: 'platform_http_request_duration_seconds',
    help: 'Time to the response, without the delay after 429.',
    labelNames: ['function', 'route'],
    buckets: bucketsSeconds,
    registers,
  })
  return {
    registry,
    ...createFunctionMetrics(registry),
    begin: () => measureRequest(requests, durations),
    onScrape: (collect) => void collectors.push(collect),
    read: async () => {
      await Promise.all(collectors.map((collect) => collect()))
      const mergedRegistry = Registry.merge([registry, processRegistry()])
      // The library writes `Nan`, which is invalid in the text format.
      return {
        contentType: mergedRegistry.contentType,
        text: (await mergedRegistry.metrics()).replaceAll(/ Nan$/gm, ' NaN'),
      }
    },
  }
}

function measureRequest(requests: Counter, durations: Histogram): RequestMetrics {
  const startedAtMs = performance.now()
  let invokedAtMs: number | undefined
  let route = { function: 'gateway', route: '$default' }
  return {
    setRoute: ({ functionName, routeKey }) => {
      route = { function: functionName, route: routeKey }
    },
    endTiming: () => {
      invokedAtMs = performance.now()
    },
    done: (status) => {
      requests.inc({ ...route, status: `${Math.floor(status / 100)}xx` })
      durations.observe(route, ((invokedAtMs ?? performance.now()) - startedAtMs) / 1000)
    },
  }
}

export const gauge = (registry: Registry, name: string, help: string, labelNames: string[] = []): Gauge =>
  new Gauge({ name, help, labelNames, registers: [registry] })
