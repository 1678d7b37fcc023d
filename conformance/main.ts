import { test } from 'node:test'
import { connect, type Journeys, type Platform } from './platform.ts'
import { help, readOptions, UsageError } from './options.ts'
import { authentication } from './journeys/authentication.ts'
import { badInput } from './journeys/bad-input.ts'
import { badPaths } from './journeys/bad-paths.ts'
import { clusterPages } from './journeys/cluster-pages.ts'
import { clusters } from './journeys/clusters.ts'
import { contract } from './journeys/contract.ts'
import { enrollment } from './journeys/enrollment.ts'
import { everyAnswer } from './journeys/every-answer.ts'
import { health } from './journeys/health.ts'
import { jobs } from './journeys/jobs.ts'
import { presence } from './journeys/presence.ts'
import { relayWork } from './journeys/relay-work.ts'
import { sessions } from './journeys/sessions.ts'
import { setup } from './journeys/setup.ts'
import { sites } from './journeys/sites.ts'

/** `npm run conformance`: black-box journeys against a running platform. */

/** In this order: setup makes the administrator whom the others sign in as, and bad input uses up rate limits. */
const areas: Record<string, Journeys> = {
  Health: health,
  Setup: setup,
  Authentication: authentication,
  Sessions: sessions,
  'Every answer': everyAnswer,
  Contract: contract,
  Sites: sites,
  Clusters: clusters,
  'Pages of clusters': clusterPages,
  Enrollment: enrollment,
  'Presence of relays': presence,
  Jobs: jobs,
  'Work of relays': relayWork,
  'Bad paths': badPaths,
  'Bad input': badInput,
}

const timeoutMs = 300_000

async function runAll(platform: Platform): Promise<void> {
  for (const [area, journeys] of Object.entries(areas)) {
    await test(area, async (suite) => {
      for (const [promise, journey] of Object.entries(journeys)) {
        await suite.test(promise, { timeout: timeoutMs }, (report) => journey(platform, report))
      }
    })
  }
  await test('Cleaning up', async (suite) => {
    await suite.test('what this run has made is removed', async (report) => {
      report.diagnostic(`${await platform.leftovers.remove()} were made`)
      const { operations, succeeded } = platform.contract
      const others = operations.map(({ operationId }) => operationId).filter((name) => !succeeded.has(name))
      report.diagnostic(`operations without a success in this run: ${others.join(', ') || 'none'}`)
    })
  })
}

function fail(error: unknown): never {
  console.error(error instanceof UsageError ? `${error.message}\nSee npm run conformance -- --help` : error)
  process.exit(error instanceof UsageError ? 2 : 1)
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2), process.env)
  if (options === undefined) process.stdout.write(help)
  else await runAll(await connect(options))
}

await main().catch(fail)
