import { useSuspenseQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { Bell, BookOpen, CircleUser, LogOut, Monitor, Moon, Search, Sun } from 'lucide-react'
import { type ReactNode, useEffect, useEffectEvent, useState } from 'react'
import { configurationQuery, useMe, useUnreadCount } from '../api/account.ts'
import { chooseTheme, type Theme, useTheme } from '../lib/theme.ts'
import { isolate, nameOf } from '@platform/contract/user-name'
import { IconButton } from '../ui/button.tsx'
import { useLazyPart } from '../ui/hooks.ts'
import { Menu } from '../ui/menu.tsx'
import styles from './shell.module.css'
import { useSignOut } from './use-sign-out.ts'

const loadPalette = () => import('./palette.tsx')

export function TopBar({ menu }: { menu: ReactNode }) {
  const { data: configuration } = useSuspenseQuery(configurationQuery)
  return (
    <header className={styles['bar']}>
      {menu}
      <Brand name={configuration.platformName ?? 'Platform'} />
      <PaletteButton />
      <NotificationBell />
      <ThemeMenu />
      <UserMenu />
    </header>
  )
}

// Ctrl+K and ⌘K also open the command palette.
function PaletteButton() {
  const [isOpen, setIsOpen] = useState(false)
  const [palette, fetchPalette] = useLazyPart(loadPalette, 'Failed to open the search')
  const open = () => {
    setIsOpen(true)
    fetchPalette()
  }
  const onShortcut = useEffectEvent(open)
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey) return
      event.preventDefault()
      onShortcut()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  return (
    <>
      <button type="button" className={styles['search']} onClick={open} aria-keyshortcuts="Control+K Meta+K">
        <Search size={16} aria-hidden />
        <span className={styles['words']}>Search</span>
        <kbd aria-hidden>Ctrl K</kbd>
      </button>
      {isOpen && palette && <palette.Palette onClose={() => setIsOpen(false)} />}
    </>
  )
}

const maxCount = 99

function NotificationBell() {
  const unreadCount = useUnreadCount()
  return (
    <Link
      to="/notifications"
      className={styles['bell']}
      aria-label={unreadCount > 0 ? `Notifications, ${unreadCount} unread` : 'Notifications'}
    >
      <Bell size={18} aria-hidden />
      {unreadCount > 0 && (
        <span className={styles['count']}>{unreadCount > maxCount ? `${maxCount}+` : unreadCount}</span>
      )}
    </Link>
  )
}

const themes = [
  { theme: 'system', label: 'System theme', icon: Monitor },
  { theme: 'light', label: 'Light', icon: Sun },
  { theme: 'dark', label: 'Dark', icon: Moon },
] as const satisfies { theme: Theme; label: string; icon: unknown }[]

function ThemeMenu() {
  const theme = useTheme()
  const { icon } = themes.find((each) => each.theme === theme) ?? themes[0]
  return (
    <Menu
      trigger={<IconButton label="Theme" icon={icon} />}
      actions={themes.map(({ theme: name, ...rest }) => ({ ...rest, onSelect: () => chooseTheme(name) }))}
    />
  )
}

function UserMenu() {
  const me = useMe()
  const name = nameOf(me)
  const navigate = useNavigate()
  const signOut = useSignOut()
  return (
    <Menu
      trigger={<IconButton label={`Account of ${name}`} icon={CircleUser} />}
      heading={
        <>
          {name}
          <br />
          {isolate(me.email)}
        </>
      }
      actions={[
        { label: 'Account', icon: CircleUser, onSelect: () => void navigate({ to: '/settings/account' }) },
        { label: 'API reference', icon: BookOpen, onSelect: () => void window.open('/docs', '_blank', 'noopener') },
        'separator',
        { label: 'Sign out', icon: LogOut, onSelect: signOut },
      ]}
    />
  )
}

const Brand = ({ name }: { name: string }) => (
  <Link to="/dashboard" className={styles['brand']}>
    <img src="/icon.svg" alt="" width={24} height={24} />
    <span>{name}</span>
  </Link>
)
