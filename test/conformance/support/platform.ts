import { randomBytes } from 'node:crypto'
import { answered } from './answer.ts'
import { Client } from './client.ts'
import { Contract } from './contract.ts'
import { Leftovers } from './leftovers.ts'
import { type Options, UsageError } from './options.ts'
import { newPerson, newTenant, type Person } from './person.ts'
import { newRelayKey, Relay, requestEnrollment } from './relay.ts'
import { until } from './until.ts'

/** A journey: runs against a platform, and throws where it breaks the promise that names the journey. */
export type Journey = (platform: Platform, report: Report) => Promise<void>

/** Journeys by the promise that each of them proves, in one line. */
export type Journeys = Record<string, Journey>

/** What a journey tells beside passing. */
export interface Report {
  diagnostic: (message: string) => void
  skip: (reason: string) => void
}

/** Reaches a platform and reads its contract. Throws `UsageError` where the administrator is another one. */
export async function connect(options: Options): Promise<Platform> {
  const url = `${options.baseUrl}/api/v1/openapi.json`
  const response = await fetch(url).catch((cause: unknown) => {
    throw new Error(`Nobody answers at ${options.baseUrl}.`, { cause })
  })
  if (!response.ok) throw new Error(`${url} answered ${response.status}: is that the platform?`)
  const document: any = await response.json()
  const platform = new Platform(options, new Contract(document))
  await platform.checkCredentials()
  return platform
}

/** The platform under test, and what this run has made on it. */
export class Platform {
  readonly options: Options
  readonly contract: Contract
  /** Calls without a token. */
  readonly anonymous: Client
  readonly leftovers: Leftovers
  #admin: Promise<Client> | undefined
  #tenant: Promise<Person> | undefined

  constructor(options: Options, contract: Contract, leftovers = new Leftovers()) {
    this.options = options
    this.contract = contract
    this.leftovers = leftovers
    this.anonymous = new Client(options.baseUrl, contract)
  }

  /** The same platform and run, with another user in the place of the administrator. */
  as({ client }: Person): Platform {
    const platform = new Platform(this.options, this.contract, this.leftovers)
    platform.#admin = Promise.resolve(client)
    return platform
  }

  /** Calls as the administrator, or whom `as` has named. */
  get admin(): Promise<Client> {
    return (this.#admin ??= this.signIn().then(({ accessToken }) => this.lasting(this.options, accessToken)))
  }

  /** Throws `UsageError` when the platform is set up and does not know the administrator. */
  async checkCredentials(): Promise<void> {
    const { username, password } = this.options
    if ((await this.anonymous.get('/api/v1/setup/status')).status !== 403) return
    if ((await this.anonymous.post('/api/v1/auth/login', { username, password })).status !== 401) return
    throw new UsageError(
      `The platform is set up, and ${username} cannot sign in with the password that is given or the default one. ` +
        'Set PLAT_CONFORMANCE_USERNAME and PLAT_CONFORMANCE_PASSWORD to those of its administrator.',
    )
  }

  /** The OrgAdmin of another organisation than the administrator's. */
  get tenant(): Promise<Person> {
    return (this.#tenant ??= newTenant(this))
  }

  /** A new user of the organisation, signed in. */
  newPerson(...roles: string[]): Promise<Person> {
    return newPerson(this, roles)
  }

  /** A new session of the administrator, or of another user. */
  async signIn({ username, password }: { username: string; password: string } = this.options): Promise<any> {
    return answered(await this.anonymous.post('/api/v1/auth/login', { username, password }), 200)
  }

  /** Calls as a user who has just signed in, for as long as the run takes. */
  lasting(credentials: { username: string; password: string }, accessToken: string): Client {
    return this.anonymous.renewing(accessToken, async () => (await this.signIn(credentials)).accessToken)
  }

  /** A name that no other run uses. */
  newName(): string {
    return `conformance ${randomBytes(6).toString('hex')}`
  }

  /** Registers a cluster that is removed when the run ends. */
  async newCluster(registration: object = {}): Promise<any> {
    const admin = await this.admin
    const body = { name: this.newName(), type: 'Hypervisor', ...registration }
    const cluster = answered(await admin.post('/api/v1/clusters', body), 201)
    this.leftovers.made(admin, `/api/v1/clusters/${cluster.id}`)
    return cluster
  }

  /** Creates a site that is removed when the run ends. */
  async newSite(): Promise<any> {
    const admin = await this.admin
    const site = answered(await admin.post('/api/v1/sites', { name: this.newName() }), 201)
    this.leftovers.made(admin, `/api/v1/sites/${site.id}`)
    return site
  }

  /** A cluster with an enrolled relay. */
  async newRelay(nodes?: readonly string[]): Promise<Relay> {
    const { enrollmentToken } = await this.newCluster()
    return this.enroll(enrollmentToken, nodes)
  }

  async enroll(enrollmentToken: string, nodes?: readonly string[]): Promise<Relay> {
    const key = newRelayKey()
    return new Relay(
      this.anonymous,
      key,
      answered(await requestEnrollment(this.anonymous, enrollmentToken, key, nodes), 201),
    )
  }

  /** Submits a script to a cluster; answers the identifier of the job. */
  async submit(clusterId: string, payload: object = {}, rest: object = {}): Promise<string> {
    const admin = await this.admin
    const job = { clusterId, type: 'InvokeScript', payload: { script: 'uname', ...payload }, ...rest }
    const { id } = answered(await admin.post('/api/v1/jobs', job), 202)
    this.leftovers.started(admin, `/api/v1/jobs/${id}`)
    return id
  }

  async job(jobId: string): Promise<any> {
    return answered(await (await this.admin).get(`/api/v1/jobs/${jobId}`), 200)
  }

  async cluster(clusterId: string): Promise<any> {
    return answered(await (await this.admin).get(`/api/v1/clusters/${clusterId}`), 200)
  }

  /** Submits a script and claims it, once a beat has told the relay of it. */
  async running(relay: Relay, payload?: object): Promise<{ jobId: string; leaseId: string }> {
    const jobId = await this.submit(relay.clusterId, payload)
    await this.told(relay, jobId)
    return { jobId, leaseId: (await relay.claim(jobId)).leaseId }
  }

  /** Beats until the relay has been told of a job. */
  async told(relay: Relay, jobId: string): Promise<void> {
    await until(`the relay is told of ${jobId}`, async () =>
      answered(await relay.beat({}, 'wait=5'), 200).jobs.includes(jobId),
    )
  }
}
