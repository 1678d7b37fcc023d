/** Names a service and carries its type: made once, by `token`, and shared by who registers and who asks. */
export interface ServiceToken<Service> {
  readonly name: string
  /** There for the compiler alone. */
  readonly service?: Service
}

/** Makes the token of a service. Two tokens of one name are two services. */
export const token = <Service>(name: string): ServiceToken<Service> => Object.freeze({ name })

/** Makes a service, with the help of others. */
export type ServiceFactory<Service> = (services: ServiceProvider) => Service

/** Where services come from once all are registered. */
export interface ServiceProvider {
  /** The one instance of a service; made when it is first asked for. Throws where it is missing, or needs itself. */
  get: <Service>(token: ServiceToken<Service>) => Service
}

/** What `configureServices` registers services with. */
export interface ServiceCollection {
  /** Registers a service of which there is one instance. Throws where the token is taken, or services are in use. */
  addSingleton: <Service>(token: ServiceToken<Service>, factory: ServiceFactory<Service>) => ServiceCollection
}

type Factories = Map<ServiceToken<unknown>, ServiceFactory<unknown>>

/** Lets `register` register services, and answers where they come from. */
export function provideServices(register: (services: ServiceCollection) => void): ServiceProvider {
  const factories: Factories = new Map()
  let isComplete = false
  const services: ServiceCollection = {
    addSingleton: (token, factory) => {
      if (isComplete) throw new Error(`The service ${token.name} is registered too late: do so in configureServices.`)
      if (factories.has(token)) throw new Error(`The service ${token.name} is registered already.`)
      factories.set(token, factory)
      return services
    },
  }
  register(services)
  isComplete = true
  return providerOf(factories)
}

function providerOf(factories: Factories): ServiceProvider {
  const made = new Map<ServiceToken<unknown>, unknown>()
  const path: ServiceToken<unknown>[] = []

  function make(token: ServiceToken<unknown>): unknown {
    const factory = factories.get(token)
    if (!factory) throw new Error(`There is no service ${token.name}.`)
    if (path.includes(token)) throw new Error(`A service needs itself: ${namesOf([...path, token])}.`)
    path.push(token)
    try {
      const service = factory(provider)
      made.set(token, service)
      return service
    } finally {
      path.pop()
    }
  }

  const provider: ServiceProvider = {
    // What was made under a token is of its type: addSingleton took no other factory.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    get: <Service>(token: ServiceToken<Service>) => (made.has(token) ? made.get(token) : make(token)) as Service,
  }
  return provider
}

const namesOf = (path: readonly ServiceToken<unknown>[]): string => path.map(({ name }) => name).join(' → ')
