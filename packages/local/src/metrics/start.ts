import type { StandIns } from '../emulators/http/environment.ts'
import type { LongPolls } from '../gateway/long-polls.ts'
import type { Settings } from '../settings.ts'
import { createMetrics, gauge, type Metrics } from './metrics.ts'
import type { Scrape } from '../gateway/exchange.ts'
import { createScrape } from './scrape.ts'
import { watchEmulators } from './emulator-metrics.ts'

/** The metrics of a platform, and its scrape endpoint. */
export function startMetrics(
  { functionThreads, metricsToken }: Settings,
  standIns: StandIns,
  holding: LongPolls,
): Metrics & { scrape: Scrape } {
  const metrics = createMetrics(functionThreads)
  watchEmulators(metrics, standIns)
  const held = gauge(metrics.registry, 'platform_http_long_polls', 'Requests that wait for something to happen.')
  metrics.onScrape(async () => held.set(holding.count()))
  return { ...metrics, scrape: createScrape(metrics, metricsToken) }
}
