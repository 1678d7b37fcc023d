import type { EmulatorAddresses } from '../emulators/http/environment.ts'
import type { LongPolls } from '../gateway/long-polls.ts'
import type { Settings } from '../settings.ts'
import { createMetrics, gauge, type Metrics } from './metrics.ts'
import type { Scrape } from '../gateway/exchange.ts'
import { createScrape } from './scrape.ts'
import { watchEmulators } from './emulator-metrics.ts'

export function startMetrics(
  { functionThreads, metricsToken }: Settings,
  emulators: EmulatorAddresses,
  longPolls: LongPolls,
): Metrics & { scrape: Scrape } {
  const metrics = createMetrics(functionThreads)
  watchEmulators(metrics, emulators)
  const longPollGauge = gauge(metrics.registry, 'platform_http_long_polls', 'Pending long polls.')
  metrics.onScrape(async () => longPollGauge.set(longPolls.count()))
  return { ...metrics, scrape: createScrape(metrics, metricsToken) }
}
