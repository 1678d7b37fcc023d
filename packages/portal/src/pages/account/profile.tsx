import { useMe } from '../../api/account.ts'
import { permissionTexts } from '../../api/permissions.ts'
import { Card, DescriptionList } from '../../ui/card.tsx'
import { Time } from '../../ui/time.tsx'
import styles from './account.module.css'

export function Profile() {
  const { id, username, email, roles, organisationId, authProvider, createdAt, permissions } = useMe()
  return (
    <div className={styles['parts']}>
      <Card title="Profile">
        <DescriptionList
          items={[
            ['User name', username],
            ['E-mail', email],
            ['Roles', roles.join(', ')],
            ['Sign-in method', authProvider === 'local' ? 'Password' : `Identity provider ${authProvider}`],
            ['Created', <Time key="since" at={createdAt} isAbsolute />],
            ['User id', <code key="id">{id}</code>],
            ['Organisation id', <code key="organisation">{organisationId}</code>],
          ]}
        />
      </Card>
      <Card title="Your permissions">
        <ul className={styles['list']}>
          {permissions.map((permission) => (
            <li key={permission}>
              {permissionTexts[permission]} <code>{permission}</code>
            </li>
          ))}
        </ul>
      </Card>
    </div>
  )
}
