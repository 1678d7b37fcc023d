import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { CircleCheck, KeyRound } from 'lucide-react'
import { useState } from 'react'
import { configurationQuery, useHasPermission } from '../../api/account.ts'
import { api, unwrap } from '../../api/client.ts'
import { pollEvery } from '../../api/query.ts'
import { StatusBadge } from '../../ui/badge.tsx'
import { Button, ButtonLink, Spinner } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { CopyField } from '../../ui/copy.tsx'
import { ErrorNote } from '../../ui/error-note.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { isTrialAddress } from '../setup/trial-address.ts'
import { type Cluster, clusterQuery, isNotFound } from './cluster-queries.ts'
import styles from './clusters.module.css'
import { installCommand } from './install-command.ts'

export interface IssuedToken {
  relayCommand: string
  previousRelayId: string | undefined
}

/** Issues a new enrollment token. Unused tokens of the cluster are revoked. */
export async function issueToken({ id, relay }: Cluster): Promise<IssuedToken> {
  const path = '/api/v1/clusters/{id}/enrollment-token'
  const { relayCommand } = await unwrap(api.POST(path, { params: { path: { id } } }))
  return { relayCommand, previousRelayId: relay?.id }
}

interface EnrollmentCardProps {
  cluster: Cluster
  issuedToken: IssuedToken | undefined
  onIssued: (issued: IssuedToken) => void
}

/** Shows the relay command of a new token, or a button that issues one, and waits for the relay. */
export const EnrollmentCard = ({ cluster, issuedToken, onIssued }: EnrollmentCardProps) => (
  <Card title={cluster.relay === null ? 'No relay yet' : 'Relay'}>
    {issuedToken !== undefined && <RelayCommand command={issuedToken.relayCommand} />}
    {issuedToken === undefined && cluster.relay === null && <FirstToken cluster={cluster} onIssued={onIssued} />}
    <WaitingForRelay
      // The wait starts again for each new token.
      key={issuedToken?.relayCommand}
      clusterId={cluster.id}
      previousRelayId={issuedToken?.previousRelayId}
    />
  </Card>
)

function FirstToken({ cluster, onIssued }: Pick<EnrollmentCardProps, 'cluster' | 'onIssued'>) {
  const mayWrite = useHasPermission('clusters:write')
  const [isBusy, setIsBusy] = useState(false)
  const [failure, setFailure] = useState<unknown>()
  const issue = async () => {
    if (isBusy) return
    setIsBusy(true)
    setFailure(undefined)
    try {
      onIssued(await issueToken(cluster))
    } catch (error) {
      setFailure(error)
    } finally {
      setIsBusy(false)
    }
  }
  return (
    <>
      <p>
        The relay command was shown when the cluster was registered or its last token was issued.
        {mayWrite && ' If it is lost or older than 24 hours, issue a new token. The old one stops working.'}
      </p>
      {failure !== undefined && <ErrorNote error={failure} />}
      {mayWrite && (
        <div className={styles['buttons']}>
          <Button icon={KeyRound} isBusy={isBusy} onClick={() => void issue()}>
            New enrollment token
          </Button>
        </div>
      )}
    </>
  )
}

const minPauseMs = 2000
const maxPauseMs = 10_000

// The pause is a tenth of the time waited so far, within the limits.
const pauseMs = (waitedMs: number): number => Math.min(maxPauseMs, Math.max(minPauseMs, waitedMs / 10))

interface WaitingProps {
  clusterId: string
  previousRelayId?: string | undefined
  hasClusterLink?: boolean
}

/** Polls until the relay has enrolled, then shows its nodes and the next steps. */
export function WaitingForRelay({ clusterId, previousRelayId, hasClusterLink = false }: WaitingProps) {
  const [sinceMs] = useState(Date.now)
  const hasEnrolled = (cluster: Cluster | undefined) =>
    cluster?.relay != null && cluster.relay.id !== previousRelayId && cluster.status !== 'Pending'
  const { data: cluster } = useQuery({
    ...clusterQuery(clusterId),
    refetchInterval: (query) =>
      hasEnrolled(query.state.data) || isNotFound(query.state.error)
        ? false
        : Math.max(pauseMs(Date.now() - sinceMs), pollEvery(minPauseMs / 1000)(query)),
  })
  return (
    <>
      <div role="status" className={styles['waiting']}>
        {hasEnrolled(cluster) ? (
          <>
            <CircleCheck size={18} aria-hidden className={styles['good']} /> The relay has enrolled.
          </>
        ) : (
          <>
            <Spinner /> Waiting for the relay … This page updates when it enrolls.
          </>
        )}
      </div>
      {cluster !== undefined && hasEnrolled(cluster) && (
        <EnrolledRelay cluster={cluster} hasClusterLink={hasClusterLink} />
      )}
    </>
  )
}

// The maximum number of nodes to list here. The page of the cluster lists all.
const maxListedNodes = 12

function EnrolledRelay({ cluster: { id, nodes }, hasClusterLink }: { cluster: Cluster; hasClusterLink: boolean }) {
  const mayRun = useHasPermission('jobs:write')
  const others = nodes.length - maxListedNodes
  return (
    <>
      <ul className={styles['nodes']} aria-label="Nodes">
        {nodes.slice(0, maxListedNodes).map((node) => (
          <li key={node.id}>
            {node.name} <StatusBadge status={node.status} />
          </li>
        ))}
        {others > 0 && <li className={styles['quiet']}>and {others.toLocaleString('en')} more</li>}
      </ul>
      <div className={styles['buttons']}>
        {mayRun && (
          <ButtonLink to="/jobs/new" search={{ clusterId: id }} variant="primary">
            Run a job
          </ButtonLink>
        )}
        {hasClusterLink && (
          <ButtonLink to="/clusters/$clusterId" params={{ clusterId: id }}>
            Open cluster
          </ButtonLink>
        )}
      </div>
    </>
  )
}

/** How to start the relay. The commands contain a secret that is shown only once. */
export function RelayCommand({ command }: { command: string }) {
  const [tab, setTab] = useState('try')
  const tabs = [
    { name: 'try', label: 'Try it', content: <TryIt command={command} /> },
    { name: 'keep', label: 'Keep it running', content: <KeepRunning command={command} /> },
    { name: 'many', label: 'Many at once', content: <ManyAtOnce command={command} /> },
  ]
  return (
    <>
      <Tabs label="Ways to start the relay" tabs={tabs} value={tab} onChange={setTab} />
      <p className={styles['quiet']}>
        The token works once within 24 hours and is not shown again. You can issue a new one on the cluster’s page.
      </p>
    </>
  )
}

function TryIt({ command }: { command: string }) {
  const { publicUrl } = useSuspenseQuery(configurationQuery).data
  const isOtherAddress =
    publicUrl !== undefined && !isTrialAddress(publicUrl) && !command.includes(new URL(publicUrl).origin)
  return (
    <>
      <p>
        Run this on the machine that runs the scripts. It needs Node.js 20 or later and outbound access to the platform.
        The relay stops when you close the terminal.
      </p>
      <CopyField text={command} label="Relay command" />
      {isOtherAddress && (
        <p className={styles['quiet']}>
          On a machine that cannot reach this address, use {publicUrl} in both places instead.
        </p>
      )}
    </>
  )
}

// The relay command is `DOWNLOAD && VARIABLE=SECRET PROGRAM … SERVER`.
function partsOf(command: string) {
  const [downloadCommand = '', startCommand = ''] = command.split(' && ')
  const [variable = ''] = startCommand.split(' ')
  const server = startCommand.slice(startCommand.lastIndexOf(' ') + 1)
  const [name = ''] = variable.split('=')
  const installLine = `${downloadCommand} && export ${variable} && ${installCommand(name, server)}`
  return { variable, server, install: installLine }
}

function KeepRunning({ command }: { command: string }) {
  const { variable, server, install } = partsOf(command)
  const namespace = 'kubectl --namespace platform-relay'
  const secret = `--from-literal=PLAT_RELAY_SERVER=${server} --from-literal=${variable}`
  return (
    <>
      <h3>Service with systemd</h3>
      <p>The relay starts with the machine, and scripts run as another user that cannot read its key.</p>
      <CopyField label="Command for systemd" text={install} />
      <h3>Container</h3>
      <p>
        Run this beside <code>Dockerfile</code> and <code>compose.yaml</code> of <code>packages/relay/deploy</code> in
        the repository. Scripts run in the container. Keep its volume: it contains the key.
      </p>
      <CopyField
        label="Command for a container"
        text={`curl -fsSLO ${server}/relay/relay.mjs && PLAT_RELAY_SERVER=${server} ${variable} docker compose up --detach --build`}
      />
      <h3>Kubernetes</h3>
      <p>
        Build the image with the <code>Dockerfile</code>, push it to your registry, and name it in{' '}
        <code>kubernetes.yaml</code> of the same folder.
      </p>
      <CopyField
        label="Commands for Kubernetes"
        text={`kubectl create namespace platform-relay && ${namespace} create secret generic platform-relay ${secret} && ${namespace} apply --filename kubernetes.yaml`}
      />
    </>
  )
}

function ManyAtOnce({ command }: { command: string }) {
  const keyCommand = command.replace(/PLAT_ENROLLMENT_TOKEN=\S+/, 'PLAT_ENROLLMENT_KEY=KEY')
  return (
    <>
      <p>
        With an enrollment key, many machines run the same command, and each becomes a cluster of its own. New clusters
        can wait for your approval. This cluster is not needed for that.
      </p>
      <p>
        Create an <Link to="/clusters/enrollment-keys">enrollment key</Link>, and run this on each machine with the key
        in place of <code>KEY</code>.
      </p>
      <CopyField label="Command with an enrollment key" text={keyCommand} />
      <h3>Service with systemd</h3>
      <CopyField label="Command for systemd with an enrollment key" text={partsOf(keyCommand).install} />
    </>
  )
}
