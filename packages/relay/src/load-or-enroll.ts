import { hostname } from 'node:os'
import type { ServerClock } from './clock.ts'
import { enroll } from './enroll.ts'
import { FatalError } from './exit-codes.ts'
import { type EnrolledNode, type Identity, loadIdentity, storeIdentity } from './identity.ts'
import { info, warn } from './log.ts'
import { type NodeConfig, readNodes } from './nodes.ts'
import type { Options } from './options.ts'

/**
 * Returns the stored identity, or enrolls the relay with the enrollment token or key. A new token replaces a stored
 * identity.
 */
export async function loadOrEnroll(options: Options, clock: ServerClock, signal: AbortSignal): Promise<Identity> {
  const { stateFolder, token, displayName } = options
  const storedIdentity = loadIdentity(stateFolder)
  // A key would create another cluster, so it never replaces a stored identity.
  if (storedIdentity && (!token || token.isKey || token.id === storedIdentity.tokenId))
    return resume(storedIdentity, options)
  if (!token)
    throw new FatalError(
      'usage',
      `${stateFolder} does not contain an enrolled relay. Set PLAT_ENROLLMENT_TOKEN or PLAT_ENROLLMENT_KEY to enroll one.`,
    )
  if (!options.server) throw new FatalError('usage', 'Set --server or PLAT_RELAY_SERVER to the URL of the platform.')
  warnAboutHttp(options.server)
  const nodes = options.nodesFile ? readNodes(options.nodesFile) : localNodes()
  const identity = await enroll({ server: options.server, token, displayName, nodes, stateFolder, clock, signal })
  storeIdentity(stateFolder, identity, storedIdentity)
  info(`Enrolled as ${identity.relayId} of cluster ${identity.clusterId}.`)
  return identity
}

function resume(stored: Identity, { server, nodesFile, stateFolder }: Options): Identity {
  const nodes = nodesFile ? withEnrolledIds(stored.nodes, readNodes(nodesFile)) : stored.nodes
  const identity = { ...stored, server: server ?? stored.server, nodes }
  if (identity.server !== stored.server) storeIdentity(stateFolder, { ...stored, server: identity.server }, undefined)
  info(`Resuming as ${identity.relayId} of cluster ${identity.clusterId}.`)
  return identity
}

// Adds the ids that the enrollment assigned to node names. Omits nodes that are not enrolled.
function withEnrolledIds(enrolledNodes: EnrolledNode[], configs: NodeConfig[]): EnrolledNode[] {
  const ids = new Map(enrolledNodes.map(({ id, config }) => [config.name, id]))
  const namesText = [...ids.keys()].join(', ')
  if (!configs.some(({ name }) => ids.has(name))) {
    throw new FatalError(
      'usage',
      `The nodes file names none of the enrolled nodes (${namesText}). Use their names, or enroll with a new token.`,
    )
  }
  const missingNames = [...ids.keys()].filter((name) => !configs.some((config) => config.name === name))
  if (missingNames.length > 0)
    warn(`The nodes file does not name ${missingNames.join(', ')}; the platform shows them as Offline.`)
  return configs.flatMap((config) => {
    const id = ids.get(config.name)
    if (id === undefined) warn(`Node ${config.name} is not enrolled. To add it, enroll the relay with a new token.`)
    return id === undefined ? [] : [{ id, config }]
  })
}

function localNodes(): NodeConfig[] {
  return [{ name: hostname().slice(0, 64) || 'localhost', executor: 'local' }]
}

function warnAboutHttp(server: string): void {
  const { protocol, hostname: host } = new URL(server)
  if (protocol === 'http:' && !['localhost', '127.0.0.1', '[::1]'].includes(host)) {
    warn(`${server} is not https: others on the network can read the enrollment token and the scripts.`)
  }
}
