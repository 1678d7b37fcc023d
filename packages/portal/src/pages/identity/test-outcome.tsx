import { CircleCheck, CircleX } from 'lucide-react'
import type { Schemas } from '../../api/client.ts'
import { Badge } from '../../ui/badge.tsx'
import styles from './identity.module.css'

const names: Readonly<Record<string, string>> = {
  discovery: 'Discovery',
  endpoints: 'Addresses',
  keys: 'Keys',
  client: 'Client',
  connect: 'Connection',
  tls: 'Encryption',
  bind: 'Service account',
  search: 'User search',
}

export const TestOutcome = ({ outcome: { ok, checks } }: { outcome: Schemas['IdentityProviderTest'] }) => (
  <div className={styles['outcome']}>
    <p>
      <strong>{ok ? 'The provider works.' : 'The provider does not work yet.'}</strong>
    </p>
    <ul aria-label="Checks" className={styles['checks']}>
      {checks.map(({ name, ok: isGood, message }) => (
        <li key={name}>
          <Badge tone={isGood ? 'good' : 'bad'} icon={isGood ? CircleCheck : CircleX}>
            {isGood ? 'Passed' : 'Failed'}
          </Badge>
          <span>
            <strong>{(Object.hasOwn(names, name) && names[name]) || name}</strong>: {message}
          </span>
        </li>
      ))}
    </ul>
  </div>
)
