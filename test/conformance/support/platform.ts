import { randomBytes } from 'node:crypto'
import { expectStatus } from './answer.ts'
import { Client } from './client.ts'
import { Contract } from './contract.ts'
import { createUser, createTenant, type TestUser } from './person.ts'
import { newRelayKey, Relay, requestEnrollment } from './relay.ts'
import { waitFor } from '../../support/wait-for.ts'

/** Environment variable with the URL of the global setup's `Options`. */
export const optionsUrlVariable = 'PLAT_CONFORMANCE_OPTIONS_URL'

export interface Options {
  /** Without a trailing slash. */
  baseUrl: string
  username: string
  password: string
  receivers?: readonly string[]
}

export async function connect(options: Options): Promise<Platform> {
  const url = `${options.baseUrl}/api/v1/openapi.json`
  const response = await fetch(url).catch((cause: unknown) => {
    throw new Error(`No connection to ${options.baseUrl}.`, { cause })
  })
  if (!response.ok) throw new Error(`${url} returned ${response.status}. Check the address of the platform.`)
  return new Platform(options, contractOf(await response.text()))
}

/** Shared by the test files of a process, because compiling schemas takes most of the time of a short file. */
const contracts = new Map<string, Contract>()

function contractOf(text: string): Contract {
  const contract = contracts.get(text) ?? new Contract(JSON.parse(text))
  contracts.set(text, contract)
  return contract
}

export class Platform {
  readonly options: Options
  readonly contract: Contract
  readonly anonymous: Client
  readonly cleanUp: AsyncDisposableStack
  #admin: Promise<Client> | undefined
  #tenant: Promise<TestUser> | undefined

  constructor(options: Options, contract: Contract, cleanUp = new AsyncDisposableStack()) {
    this.options = options
    this.contract = contract
    this.cleanUp = cleanUp
    this.anonymous = new Client(options.baseUrl, contract)
  }

  as({ client }: TestUser): Platform {
    const platform = new Platform(this.options, this.contract, this.cleanUp)
    platform.#admin = Promise.resolve(client)
    return platform
  }

  /**
   * Deletes a resource at the end of the run. Repeats the request until the resource is removed, because a job of a
   * failed test may end a minute after its cancellation.
   */
  removeLater(client: Client, path: string): void {
    const isRemoved = async () => [204, 404].includes((await client.delete(path)).status)
    this.cleanUp.defer(async () => void (await waitFor(`${path} to be removed`, isRemoved, 200)))
  }

  cancelLater(client: Client, path: string): void {
    this.cleanUp.defer(async () => void (await client.post(`${path}/cancel`)))
  }

  get admin(): Promise<Client> {
    return (this.#admin ??= this.signIn().then(({ accessToken }) => this.renewingClient(this.options, accessToken)))
  }

  get tenant(): Promise<TestUser> {
    return (this.#tenant ??= createTenant(this))
  }

  newUser(...roles: string[]): Promise<TestUser> {
    return createUser(this, roles)
  }

  async signIn({ username, password }: { username: string; password: string } = this.options): Promise<any> {
    return expectStatus(await this.anonymous.post('/api/v1/auth/login', { username, password }), 200)
  }

  renewingClient(credentials: { username: string; password: string }, accessToken: string): Client {
    return this.anonymous.renewing(accessToken, async () => (await this.signIn(credentials)).accessToken)
  }

  newName(): string {
    return `conformance ${randomBytes(6).toString('hex')}`
  }

  async newCluster(registration: object = {}): Promise<any> {
    const admin = await this.admin
    const body = { name: this.newName(), type: 'Hypervisor', ...registration }
    const cluster = expectStatus(await admin.post('/api/v1/clusters', body), 201)
    this.removeLater(admin, `/api/v1/clusters/${cluster.id}`)
    return cluster
  }

  async newSite(): Promise<any> {
    const admin = await this.admin
    const site = expectStatus(await admin.post('/api/v1/sites', { name: this.newName() }), 201)
    this.removeLater(admin, `/api/v1/sites/${site.id}`)
    return site
  }

  async newRelay(nodes?: readonly string[]): Promise<Relay> {
    const { enrollmentToken } = await this.newCluster()
    return this.enroll(enrollmentToken, nodes)
  }

  async enroll(enrollmentToken: string, nodes?: readonly string[]): Promise<Relay> {
    const key = newRelayKey()
    return new Relay(
      this.anonymous,
      key,
      expectStatus(await requestEnrollment(this.anonymous, enrollmentToken, key, nodes), 201),
    )
  }

  async submit(clusterId: string, payload: object = {}, fields: object = {}): Promise<string> {
    const admin = await this.admin
    const job = { clusterId, type: 'InvokeScript', payload: { script: 'uname', ...payload }, ...fields }
    const { id } = expectStatus(await admin.post('/api/v1/jobs', job), 202)
    this.cancelLater(admin, `/api/v1/jobs/${id}`)
    return id
  }

  async job(jobId: string): Promise<any> {
    return expectStatus(await (await this.admin).get(`/api/v1/jobs/${jobId}`), 200)
  }

  async cluster(clusterId: string): Promise<any> {
    return expectStatus(await (await this.admin).get(`/api/v1/clusters/${clusterId}`), 200)
  }

  async startJob(relay: Relay, payload?: object): Promise<{ jobId: string; leaseId: string }> {
    const jobId = await this.submit(relay.clusterId, payload)
    await this.waitForOffer(relay, jobId)
    return { jobId, leaseId: (await relay.claim(jobId)).leaseId }
  }

  async waitForOffer(relay: Relay, jobId: string): Promise<void> {
    await waitFor(`the offer of ${jobId}`, async () => expectStatus(await relay.heartbeat(), 200).jobs.includes(jobId))
  }
}
