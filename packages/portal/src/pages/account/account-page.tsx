import { useNavigate, useSearch } from '@tanstack/react-router'
import { Page } from '../../ui/page.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { Appearance } from './appearance.tsx'
import { Password } from './password.tsx'
import { Profile } from './profile.tsx'
import { Sessions } from './sessions.tsx'
import { Tokens } from './tokens.tsx'

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
  const shown = tabs.find(({ name }) => name === tab)?.name ?? 'profile'
  return (
    <Page title="Account">
      <Tabs
        label="Account"
        tabs={tabs}
        value={shown}
        onChange={(name) => void navigate({ to: '/settings/account', search: { tab: name }, replace: true })}
      />
    </Page>
  )
}
