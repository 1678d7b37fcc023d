import { useSuspenseQuery } from '@tanstack/react-query'
import { configurationQuery } from '../../api/account.ts'
import { chooseTheme, type Theme, useTheme } from '../../app/theme.ts'
import { Card, DescriptionList } from '../../ui/card.tsx'
import { Time, useNow } from '../../ui/time.tsx'
import styles from './account.module.css'

const themes: Readonly<Record<Theme, string>> = { system: 'As the system', light: 'Light', dark: 'Dark' }

/** How the portal looks in this browser, and in which time zone it shows times. */
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
              {themes[name]}
            </label>
          ))}
        </fieldset>
        <p className={styles['text']}>Kept in this browser.</p>
      </Card>
      <Card title="Time zone">
        <p className={styles['text']}>Times are shown in the zone of your browser.</p>
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
