// The menu of the person: account, language, theme, sign out.
import Button from '@mui/material/Button'
import Divider from '@mui/material/Divider'
import ListSubheader from '@mui/material/ListSubheader'
import Menu from '@mui/material/Menu'
import MenuItem from '@mui/material/MenuItem'
import { useState } from 'react'
import { useNavigate } from 'react-router'
import { BASE_PATH } from '../service/base-path.js'
import { showFailure } from './message-list.js'
import { getAccount, signOut } from '../service/session.js'
import { chooseLocale, LOCALES, useLocale, useTexts } from '../texts/texts.js'
import { chooseTheme, useThemeChoice, type ThemeChoice } from '../theme/app-theme.js'
import { UserIcon } from './icons.js'

export function UserMenu() {
  const { menu } = useTexts()
  const [anchor, setAnchor] = useState<HTMLElement | null>(null)
  const navigate = useNavigate()
  const locale = useLocale()
  const theme = useThemeChoice()
  const { name, username } = getAccount()
  const close = () => setAnchor(null)
  const run = (action: () => void) => () => {
    close()
    action()
  }
  const themes: readonly (readonly [ThemeChoice, string])[] = [
    ['system', menu.system],
    ['light', menu.light],
    ['dark', menu.dark],
  ]
  return (
    <>
      <Button
        color="inherit"
        startIcon={<UserIcon />}
        onClick={(event) => setAnchor(event.currentTarget)}
        aria-haspopup="menu"
        aria-expanded={anchor !== null}
      >
        {name ?? username}
      </Button>
      <Menu anchorEl={anchor} open={anchor !== null} onClose={close}>
        <MenuItem onClick={run(() => void navigate('/account'))}>{menu.account}</MenuItem>
        <MenuItem component="a" href={`${BASE_PATH}/docs`} target="_blank" rel="noopener" onClick={close}>
          {menu.apiReference}
        </MenuItem>
        <Divider />
        <ListSubheader role="presentation">{menu.language}</ListSubheader>
        {LOCALES.map((each) => (
          <MenuItem
            key={each.locale}
            lang={each.locale}
            selected={each.locale === locale}
            onClick={run(() => void chooseLocale(each.locale))}
          >
            {each.name}
          </MenuItem>
        ))}
        <ListSubheader role="presentation">{menu.theme}</ListSubheader>
        {themes.map(([choice, label]) => (
          <MenuItem key={choice} selected={choice === theme} onClick={run(() => chooseTheme(choice))}>
            {label}
          </MenuItem>
        ))}
        <Divider />
        <MenuItem onClick={run(() => void signOut().catch(showFailure))}>{menu.signOut}</MenuItem>
      </Menu>
    </>
  )
}
