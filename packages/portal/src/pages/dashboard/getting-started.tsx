import { useQuery, useSuspenseQuery } from '@tanstack/react-query'
import { Circle, CircleCheck, Server, Terminal, Users } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { configurationQuery, useHasPermission, useSummary } from '../../api/account.ts'
import { api, unwrap } from '../../api/client.ts'
import { getPreference, setPreference } from '../../lib/preferences.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Card } from '../../ui/card.tsx'
import { CopyField } from '../../ui/copy.tsx'
import { installCommand } from '../clusters/install-command.ts'
import { ExampleLinks } from '../jobs/examples.tsx'
import { isTrialAddress } from '../setup/trial-address.ts'
import styles from './dashboard.module.css'

const preference = 'getting_started'

/** The first steps of a new platform, or the examples of a demo. If all are done or hidden, it renders `otherwise`. */
export function GettingStarted({ otherwise }: { otherwise?: ReactNode }) {
  const { isDemo = false } = useSuspenseQuery(configurationQuery).data
  const [isHidden, setIsHidden] = useState(() => getPreference(preference) === 'hidden')
  if (isDemo) return <DemoExamples />
  if (isHidden) return otherwise
  const hide = () => {
    setPreference(preference, 'hidden')
    setIsHidden(true)
  }
  return <Checklist onHide={hide} otherwise={otherwise} />
}

const DemoExamples = () => (
  <Card title="Run a script on the three clusters of this demo">
    <p>Choose an example, look at it, and run it.</p>
    <ExampleLinks />
  </Card>
)

interface Step {
  title: string
  /** Undefined while it is unknown. */
  isDone: boolean | undefined
  content: ReactNode
}

function Checklist({ onHide, otherwise }: { onHide: () => void; otherwise: ReactNode }) {
  const steps = useSteps()
  if (steps.every(({ isDone }) => isDone !== false)) return otherwise
  return (
    <Card
      title="Get started"
      actions={
        <Button variant="quiet" onClick={onHide}>
          Hide
        </Button>
      }
    >
      <ol className={styles['steps']}>
        {steps.map(({ title, isDone, content }) => (
          <li key={title}>
            {isDone ? (
              <CircleCheck size={20} aria-hidden className={styles['done']} />
            ) : (
              <Circle size={20} aria-hidden />
            )}
            <div>
              <h3>
                {title}
                <span className="visually-hidden">{isDone ? ' (done)' : isDone === false && ' (to do)'}</span>
              </h3>
              {isDone === false && content}
            </div>
          </li>
        ))}
      </ol>
    </Card>
  )
}

function useSteps(): Step[] {
  const { publicUrl } = useSuspenseQuery(configurationQuery).data
  const summary = useSummary().data
  const mayRegister = useHasPermission('clusters:write')
  const mayRun = useHasPermission('jobs:write')
  const mayInvite = useHasPermission('users:admin')
  const isPlatformAdmin = useHasPermission('platform:admin')
  const clusters = summary?.clusters
  const isConnected = clusters && clusters.byStatus.Healthy + clusters.byStatus.Degraded > 0
  const isInstalled = useIsInstalled(mayRegister && isConnected === true)
  const users = useQuery({
    queryKey: ['users', 'count'],
    queryFn: async () => (await unwrap(api.GET('/api/v1/users', { params: { query: { pageSize: 1 } } }))).totalCount,
    enabled: mayInvite,
  })
  const server = location.origin
  return [
    mayRegister && {
      title: 'Register a cluster',
      isDone: clusters && clusters.total > 0,
      content: (
        <>
          <p>A cluster is one or more machines on which scripts run. You can start with this machine.</p>
          <ButtonLink to="/clusters/register" variant="primary" icon={Server}>
            Register a cluster
          </ButtonLink>
          <CopyField label="Command to register a cluster" text="npx plat cluster register berlin-1" />
        </>
      ),
    },
    mayRegister && {
      title: 'Install the relay permanently',
      isDone: isConnected === undefined ? undefined : isConnected && isInstalled,
      content: (
        <>
          <p>
            The command shown at registration is a trial: the relay stops when you log out. As a systemd service, it
            starts with the machine, and scripts run as another user. Export the enrollment token first:
          </p>
          <CopyField label="Command to install the relay" text={installCommand('PLAT_ENROLLMENT_TOKEN', server)} />
          <p>The page of the registration also describes containers and Kubernetes, which are not detected here.</p>
        </>
      ),
    },
    mayRun && {
      title: 'Run a script',
      isDone: summary?.jobs && summary.jobs.total > 0,
      content: (
        <>
          <ButtonLink to="/jobs/new" search={{ all: true }} icon={Terminal}>
            Run a script
          </ButtonLink>
          <CopyField label="Command to run a script" text="npx plat run --all -- uname -sr" />
        </>
      ),
    },
    mayInvite && {
      title: 'Invite a colleague',
      isDone: users.data === undefined ? undefined : users.data > 1,
      content: (
        <>
          <ButtonLink to="/settings/users" icon={Users}>
            Users
          </ButtonLink>
          <CopyField
            label="Command to create a user"
            text="npx plat user create grace --email grace@example.com --role Operator"
          />
        </>
      ),
    },
    isPlatformAdmin && {
      title: 'Set the public address',
      isDone: publicUrl !== undefined && !isTrialAddress(publicUrl),
      content: (
        <>
          <p>The address is that of a trial. Identity providers redirect to it, so they need the real one.</p>
          <ButtonLink to="/settings/identity">Identity providers</ButtonLink>
          <CopyField
            label="Command to set the public address"
            text="npx plat platform settings --public-url https://platform.example.com"
          />
        </>
      ),
    },
  ].filter((step) => step !== false)
}

/** Whether the relay of the newest healthy cluster runs scripts as another user, as an installed service does. */
function useIsInstalled(isEnabled: boolean): boolean | undefined {
  return useQuery({
    queryKey: ['clusters', 'is-installed'],
    queryFn: async () => {
      const query = { status: 'Healthy', pageSize: 1 } as const
      const { items } = await unwrap(api.GET('/api/v1/clusters', { params: { query } }))
      const id = items[0]?.id
      if (id === undefined) return false
      const { relay } = await unwrap(api.GET('/api/v1/clusters/{id}', { params: { path: { id } } }))
      return relay?.scriptsIsolated === true
    },
    enabled: isEnabled,
  }).data
}
