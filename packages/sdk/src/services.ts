/**
 * Identifies a service and carries its type. Create a token once with `token`, and use it for registration and lookup.
 */
export interface ServiceToken<Service> {
  readonly name: string
  /** Exists only for type inference and is never set. */
  readonly service?: Service
}

/** Creates a service token. Two tokens with the same name identify two different services. */
export const token = <Service>(name: string): ServiceToken<Service> => Object.freeze({ name })

/** Creates a service. The factory can resolve other services that the service depends on. */
export type ServiceFactory<Service> = (services: ServiceProvider) => Service

/** Resolves services after all of them are registered. */
export interface ServiceProvider {
  /**
   * Returns the single instance of a service and creates it on first use. Throws `Error` if the service is not
   * registered or depends on itself.
   */
  get: <Service>(token: ServiceToken<Service>) => Service
}

/** Registers services in `configureServices`. */
export interface ServiceCollection {
  /**
   * Registers a service that has a single instance. Throws `Error` if the token is already registered, or after
   * `configureServices` has ended.
   */
  addSingleton: <Service>(token: ServiceToken<Service>, factory: ServiceFactory<Service>) => ServiceCollection
}

type Factories = Map<ServiceToken<unknown>, ServiceFactory<unknown>>

/** Runs `register` and returns a provider of the registered services. */
export function provideServices(register: (services: ServiceCollection) => void): ServiceProvider {
  const factories: Factories = new Map()
  let isComplete = false
  const services: ServiceCollection = {
    addSingleton: (token, factory) => {
      if (isComplete)
        throw new Error(`The service ${token.name} is registered too late. Register it in configureServices.`)
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
  const instances = new Map<ServiceToken<unknown>, unknown>()
  const path: ServiceToken<unknown>[] = []

  function create(token: ServiceToken<unknown>): unknown {
    const factory = factories.get(token)
    if (!factory) throw new Error(`The service ${token.name} is not registered.`)
    if (path.includes(token)) throw new Error(`A service depends on itself: ${namesOf([...path, token])}.`)
    path.push(token)
    try {
      const service = factory(provider)
      instances.set(token, service)
      return service
    } finally {
      path.pop()
    }
  }

  const provider: ServiceProvider = {
    get: <Service>(token: ServiceToken<Service>) => {
      const service = instances.has(token) ? instances.get(token) : create(token)
      // `addSingleton` accepts only factories of the token's type.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      return service as Service
    },
  }
  return provider
}

const namesOf = (path: readonly ServiceToken<unknown>[]): string => path.map(({ name }) => name).join(' → ')
