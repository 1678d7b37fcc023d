import { useSuspenseQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { configurationQuery, useMe } from '../../api/account.ts'
import { permissionTexts } from '../../api/permissions.ts'
import { chooseTheme, type Theme, useTheme } from '../../lib/theme.ts'
import { isolate } from '@platform/contract/user-name'
import { Card, DescriptionList } from '../../ui/card.tsx'
import { Page } from '../../ui/page.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { Time, useNow } from '../../ui/time.tsx'
import styles from './account.module.css'
import { Password } from './password.tsx'
import { Sessions } from './sessions.tsx'
import { Tokens } from './tokens.tsx'

export function Profile() {
  const { id, username, displayName, email, roles, organisationId, authProvider, createdAt, permissions } = useMe()
  return (
    <div className={styles['parts']}>
      <Card title="Profile">
        <DescriptionList
          items={[
            ...(displayName === undefined ? [] : [['Name', isolate(displayName)] as const]),
            ['User name', isolate(username)],
            ['E-mail', isolate(email)],
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

const themeTitles: Readonly<Record<Theme, string>> = { system: 'System theme', light: 'Light', dark: 'Dark' }

export function Appearance() {
  const { timezone } = useSuspenseQuery(configurationQuery).data
  const theme = useTheme()
  const nowMs = useNow()
  return (
    <div className={styles['parts']}>
      <Card title="Theme">
        <fieldset className={styles['choices']}>
          <legend className="visually-hidden">Theme</legend>
          {(['system', 'light', 'dark'] as const).map((name) => (
            <label key={name}>
              <input type="radio" name="theme" checked={theme === name} onChange={() => chooseTheme(name)} />{' '}
              {themeTitles[name]}
            </label>
          ))}
        </fieldset>
        <p className={styles['text']}>Saved in this browser only.</p>
      </Card>
      <Card title="Time zone">
        <p className={styles['text']}>Times use your browser’s time zone.</p>
        <DescriptionList
          items={[
            ['Your browser', new Intl.DateTimeFormat().resolvedOptions().timeZone],
            ['The platform', timezone ?? 'not set'],
            ['Now', <Time key="now" at={new Date(nowMs).toISOString()} isAbsolute />],
          ]}
        />
      </Card>
    </div>
  )
}

const tabs = [
  { name: 'profile', label: 'Profile', content: <Profile /> },
  { name: 'password', label: 'Password', content: <Password /> },
  { name: 'sessions', label: 'Sessions', content: <Sessions /> },
  { name: 'tokens', label: 'API tokens', content: <Tokens /> },
  { name: 'appearance', label: 'Appearance', content: <Appearance /> },
]

export function AccountPage() {
  const { tab } = useSearch({ from: '/signed-in/settings/account' })
  const navigate = useNavigate()
  const shownTab = tabs.find(({ name }) => name === tab)?.name ?? 'profile'
  return (
    <Page title="Account">
      <Tabs
        label="Account"
        tabs={tabs}
        value={shownTab}
        onChange={(name) => void navigate({ to: '/settings/account', search: { tab: name }, replace: true })}
      />
    </Page>
  )
}
