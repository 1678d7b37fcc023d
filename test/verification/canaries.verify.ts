import { expect, test } from 'vitest'
import { expectStatus } from '../conformance/support/answer.ts'
import { connect } from '../conformance/support/platform.ts'
import { freePorts } from '../support/free-ports.ts'
import { PlatformProcess } from '../support/platform.ts'
import { exercisePlatformSecrets, exerciseProviders, exerciseRelay } from './canaries/fixtures.ts'
import { misuse } from './canaries/misuse.ts'
import { startRecorder } from './canaries/recorder.ts'
import { randomSecret, type Secret, SecretSearch } from './canaries/search.ts'
import { isIssuedBy, isUnknownMember, secretsOf } from './canaries/secrets.ts'
import { StoredData } from './canaries/stored-data.ts'
import { claimAll, claimAtLeast, claimNone } from './support/claims.ts'
import { storeFaultsOf } from './support/emulators.ts'
import { runJourneys } from './support/journeys.ts'
import { isShort } from './support/run.ts'

const shortSelection = ['browser-sessions', 'api-tokens', 'idempotency']

const operations = ['GetItem', 'BatchGetItem', 'Query', 'PutItem', 'UpdateItem', 'BatchWriteItem', 'TransactWriteItems']

const oneOfEachKind = (secrets: readonly Secret[]): Secret[] => [
  ...new Map(secrets.map((secret) => [secret.kind, secret])).values(),
]

test('secrets appear only in the response that issues them', async () => {
  const receivers = (await freePorts(2)).map((port) => `127.0.0.1:${port}`).join()
  const settings = {
    PLAT_OUTBOUND_ALLOW: '127.0.0.1:9',
    PLAT_WEBHOOK_ALLOW: `${receivers},127.0.0.1:9`,
    PLAT_REGISTRY_ALLOW: '127.0.0.1:9',
    PLAT_LOG_LEVEL: 'debug',
    PLAT_METRICS: 'emf',
  }
  await using platform = await PlatformProcess.start(settings, { withFaults: true })
  await using recorder = await startRecorder(platform.url)
  const storedData = new StoredData(platform)
  const stopController = new AbortController()
  const collecting = storedData.collectUntil(stopController.signal)
  const adminToken = await platform.command('npm run -s admin-token')
  const password = randomSecret('password')
  const environment = { PLAT_WEBHOOK_ALLOW: receivers, PLAT_CONFORMANCE_PASSWORD: password }
  const selection = isShort ? { only: shortSelection } : {}
  expect(await runJourneys(platform, { baseUrl: recorder.url, environment, ...selection })).toBe(true)

  const { url, exchanges } = recorder
  const credentials = { username: 'admin', password }
  const api = await connect({ baseUrl: url, ...credentials })
  const relay = await exerciseRelay(api)
  const usedSecrets = [
    ...relay.secrets,
    ...(await exerciseProviders(api)),
    ...(await exercisePlatformSecrets(platform, api)),
  ]
  const { accessToken } = await api.signIn()
  const { organisationId } = expectStatus(await (await api.admin).get('/api/v1/auth/me'), 200)
  const kinds = oneOfEachKind([...usedSecrets, ...secretsOf(exchanges)])
  const misused = isShort ? kinds.filter((_, index) => index % 4 === 0) : kinds
  await misuse(url, misused, accessToken)
  const faults = await storeFaultsOf(platform)
  await faults.set({ throttleRate: 1, operations })
  await misuse(url, misused.slice(0, 3), accessToken)
  for (const path of ['login', 'session'])
    await api.anonymous.attempt('POST', `/api/v1/auth/${path}`, { json: credentials })
  await faults.clear()
  stopController.abort()
  await collecting
  const metrics = await (await fetch(`${platform.url}/metrics`)).text()

  const secrets = [{ kind: 'initial admin token', text: adminToken.trim() }, ...usedSecrets, ...secretsOf(exchanges)]
  const search = new SecretSearch(secrets)
  claimAtLeast('kinds of secrets', new Set(secrets.map(({ kind }) => kind)).size, 12)
  const secretList = Buffer.from(secrets.map(({ text }) => text).join('\n')).toString('latin1')
  claimAll('secrets that the search finds in a list of them', search.find(secretList).size, secrets.length)
  const { tableItems, queuePages } = storedData
  const control = new SecretSearch([{ kind: 'known', text: organisationId }])
  const isSearched = [tableItems, queuePages, [platform.text]].map((texts) => control.describe(texts).length > 0)
  claimAll('places where the search finds a known text', isSearched.filter(Boolean).length, 3)

  const disclosures = exchanges.flatMap((exchange) => {
    const { headers, body } = exchange.response
    const foundSecrets = search.find(`${headers.join('\n')}\n${body}`).keys()
    const unexpectedSecrets = [...foundSecrets].filter(
      (secret) => !isIssuedBy(exchange, secret) && !isUnknownMember(exchange, secret),
    )
    return unexpectedSecrets.map(({ kind }) => `${exchange.method} ${exchange.target} ${exchange.status}: ${kind}`)
  })
  claimNone('secrets in other responses', disclosures, `${exchanges.length} responses`)
  const log = Buffer.from(platform.text).toString('latin1')
  claimNone('secrets in the log at level debug', search.describe([log]), `${log.split('\n').length} lines`)
  claimNone('secrets in the output of a relay', search.describe([relay.output]))
  claimNone('secrets in the table', search.describe(tableItems), `${tableItems.size} states of items`)
  claimNone('secrets in the files of the queues', search.describe(queuePages), `${queuePages.size} pages`)
  claimNone('secrets in the metrics', search.describe([metrics]))
})
